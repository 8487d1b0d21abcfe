//===- MPBase.td - the mp dialect, its attributes and base classes --------===//

#ifndef MP_BASE_TD
#define MP_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

include "dialect/IR/PrecisionInterfaces.td"

def MP_Dialect : Dialect {
  let name = "mp";
  let cppNamespace = "::mlir::mp";
  let summary = "Mixed-precision tensor graphs";
  let description = [{
    Forward and backward graphs of PyTorch as values: ranked tensors, no
    aliasing, no mutation. The dialect makes each dtype conversion an operation
    that knows who asked for it, and leaves every other operator as it is.
    See `dialect/docs/Spec.md` for the constraints and `Rationale.md` for the
    reasons.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Unit attribute of an op that belongs to the backward graph.
    static constexpr ::llvm::StringLiteral kBackwardAttrName = "mp.backward";
    /// Integer attribute: the checkpointed region that runs this op twice.
    static constexpr ::llvm::StringLiteral kRecomputeAttrName = "mp.recompute";
    /// Unit attribute of a cast that an operator does by itself (type
    /// promotion), between mp-normalize and mp-lower.
    static constexpr ::llvm::StringLiteral kImplicitAttrName = "mp.implicit";
    /// String attribute of an argument: parameter, buffer, input, tangent,
    /// saved, symint, or half_weight for the half copy of a parameter that its
    /// optimizer writes.
    static constexpr ::llvm::StringLiteral kRoleAttrName = "mp.role";
    /// String attribute of an argument or result: its name in the framework.
    static constexpr ::llvm::StringLiteral kNameAttrName = "mp.name";
    /// Array attribute of a function: the record of what passes changed.
    static constexpr ::llvm::StringLiteral kRewritesAttrName = "mp.rewrites";
    /// String attribute of a function: name of the target it will run on.
    static constexpr ::llvm::StringLiteral kTargetAttrName = "mp.target";
    /// Integer attribute of an argument or an op: its value is this power of a
    /// loss scale.
    static constexpr ::llvm::StringLiteral kLossScaleAttrName =
        "mp.loss_scale";
    /// Array attribute of an op or an argument: why a type is pinned (Pins.h).
    static constexpr ::llvm::StringLiteral kPinAttrName = "mp.pin";
    /// Array attribute of an op, a hint: per operand, the half type that it is
    /// to be read in, or unit.
    static constexpr ::llvm::StringLiteral kReadAsAttrName = "mp.read_as";
    /// Type attribute of an op, a hint: the type that its result is stored in.
    static constexpr ::llvm::StringLiteral kStoreAsAttrName = "mp.store_as";
    /// String attribute of a function: name or file of its cost model.
    static constexpr ::llvm::StringLiteral kCostModelAttrName =
        "mp.cost_model";
    /// Type attribute of a library call, a hint: the half type to compute in.
    static constexpr ::llvm::StringLiteral kComputeAsAttrName =
        "mp.compute_as";
    /// Dictionary attribute of a function: what mp-assign-precision found.
    static constexpr ::llvm::StringLiteral kPlacementAttrName = "mp.placement";
    /// Dictionary attribute of a function: what mp-report-traffic counted.
    static constexpr ::llvm::StringLiteral kTrafficAttrName = "mp.traffic";
    /// Dictionary attribute of a function: file, text and sha256 of the policy
    /// that mp-apply-policy reads.
    static constexpr ::llvm::StringLiteral kPolicyAttrName = "mp.policy";
    /// Dictionary attribute of a function: kinds of operators that the table
    /// has no row for (UserOps.h).
    static constexpr ::llvm::StringLiteral kOpRowsAttrName = "mp.op_rows";
    /// Integer attribute of a function: apply only so many rewrites.
    static constexpr ::llvm::StringLiteral kRewriteLimitAttrName =
        "mp.rewrite_limit";
  }];
}

def MP_CastOrigin : I32EnumAttr<"CastOrigin", "who asked for a conversion", [
    I32EnumAttrCase<"user", 0>,
    I32EnumAttrCase<"autocast", 1>,
    I32EnumAttrCase<"promotion", 2>,
    I32EnumAttrCase<"decomposition", 3>,
    I32EnumAttrCase<"mpopt", 4>]> {
  let cppNamespace = "::mlir::mp";
  let genSpecializedAttr = 0;
}
def MP_CastOriginAttr : EnumAttr<MP_Dialect, MP_CastOrigin, "origin"> {
  let assemblyFormat = "`<` $value `>`";
}

def MP_PinFormat : I32EnumAttr<"PinFormat", "the type that a pin asks for", [
    I32EnumAttrCase<"fp32", 0>,
    I32EnumAttrCase<"half", 1>,
    I32EnumAttrCase<"keep", 2>]> {
  let cppNamespace = "::mlir::mp";
  let genSpecializedAttr = 0;
}

def MP_PinWhere : I32EnumAttr<"PinWhere", "the part of an op that is pinned", [
    I32EnumAttrCase<"result", 0>,
    I32EnumAttrCase<"operands", 1>,
    I32EnumAttrCase<"both", 2>]> {
  let cppNamespace = "::mlir::mp";
  let genSpecializedAttr = 0;
}

def MP_PinAttr : AttrDef<MP_Dialect, "Pin"> {
  let mnemonic = "pin";
  let summary = "One piece of evidence that a type must be what it is";
  let description = [{
    `mp.pin` is an array of these: evidence is a union. `fp32 result`: the value
    is computed and stored in f32, and no rounding is put on it. `fp32 operands`:
    no rounding is added in front of this reader. `half`: the half type is
    wanted. `keep`: exactly the traced types. Without indices a pin is about all
    results or operands. `rule` is a name for programs, `reason` a text for
    people.

    Legal:

    ```mlir
    #mp.pin<fp32 result[1, 2], "norm-statistics", "mean and deviation over 768">
    ```

    Illegal, because the reason is empty (pin_c2):

    ```mlir
    #mp.pin<fp32 operands, "softmax", "">
    ```
  }];
  let parameters = (ins EnumParameter<MP_PinFormat>:$format,
                        EnumParameter<MP_PinWhere>:$where,
                        OptionalArrayRefParameter<"int64_t">:$indices,
                        "::mlir::StringAttr":$rule,
                        "::mlir::StringAttr":$reason);
  let builders = [
    AttrBuilder<(ins "PinFormat":$format, "PinWhere":$where,
                     "::llvm::StringRef":$rule, "const ::llvm::Twine &":$reason,
                     CArg<"::llvm::ArrayRef<int64_t>", "{}">:$indices)>
  ];
  let assemblyFormat = [{
    `<` $format $where (`[` $indices^ `]`)? `,` $rule `,` $reason `>`
  }];
  let genVerifyDecl = 1;
}

class MP_Op<string mnemonic, list<Trait> traits = []>
    : Op<MP_Dialect, mnemonic, traits>;

def MP_FloatTensor : RankedTensorOf<[AnyFloat]>;

#endif // MP_BASE_TD
