//===- PrecisionInterfaces.td - what passes ask of an operation -----------===//

#ifndef MP_PRECISION_INTERFACES_TD
#define MP_PRECISION_INTERFACES_TD

include "mlir/IR/Interfaces.td"

def MP_PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::mlir::mp";
  let description = [{
    The precision knowledge of one operation. Passes ask this interface and
    never an operation's name. For `mp.aten` the answers come from one table
    (`OpTable.def`); an operator without a row is `unknown`, and nothing is
    assumed of it.
  }];
  let methods = [
    InterfaceMethod<"The kind of computation, the row's first column.",
      "::mlir::mp::OpKind", "getOpKind">,
    InterfaceMethod<[{
        True if result element i is, bit for bit, some element of an operand of
        the same element type, chosen without looking at floating-point values.
        Any elementwise conversion then commutes with the operation.
      }], "bool", "isDataMovement", (ins), [{}], [{
        return isDataMovementKind($_op.getOpKind());
      }]>,
    InterfaceMethod<[{
        True if the operation only renames elements of one operand and costs
        nothing: no byte is read or written for it.
      }], "bool", "isView", (ins), [{}], [{
        return $_op.getOpKind() == OpKind::View;
      }]>,
    InterfaceMethod<[{
        True if rounding to a narrower format commutes with the operation: it
        is monotone or odd, and computes no new values (relu, neg, min, max).
      }], "bool", "commutesWithRounding", (ins), [{}], [{
        return isDataMovementKind($_op.getOpKind()) ||
               $_op.getOpKind() == OpKind::Monotone;
      }]>,
    InterfaceMethod<[{
        True if a rounding of this operand can decide a discrete result: a
        comparison, an index, a count, a conversion to integer. Such a rounding
        is never dropped, whatever the contract.
      }], "bool", "observesRounding", (ins "unsigned":$operand), [{}], [{
        return isRoundingObserverKind($_op.getOpKind());
      }]>,
    InterfaceMethod<[{
        The operands that carry the numbers whose conversion commutes with a
        data movement or monotone operation. Indices, masks and sizes are not
        among them.
      }], "::llvm::SmallVector<unsigned>", "getValueOperands", (ins), [{}], [{
        return defaultValueOperands($_op.getOperation());
      }]>
  ];
}

#endif // MP_PRECISION_INTERFACES_TD
