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
        return isViewKind($_op.getOpKind());
      }]>,
    InterfaceMethod<[{
        True if any rounding to a narrower float type commutes with the
        operation bit for bit: it moves elements or changes their signs.
      }], "bool", "commutesWithRounding", (ins), [{}], [{
        return isDataMovementKind($_op.getOpKind()) ||
               $_op.getOpKind() == OpKind::Sign;
      }]>,
    InterfaceMethod<[{
        True if each result element is one of the operands' elements, chosen by
        their order (relu, min, max). On values that the narrower type holds
        such an operation gives the same bits in either type. Rounding first
        can change the sign of a zero: relu of -1e-9 is +0, but f16 rounds it
        to -0, which relu keeps.
      }], "bool", "selectsByOrder", (ins), [{}], [{
        return $_op.getOpKind() == OpKind::Monotone;
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
        among them. Empty if an operand of another type carries numbers too: then
        the framework promotes, and the result type is not the operation's own.
      }], "::llvm::SmallVector<unsigned>", "getValueOperands", (ins), [{}], [{
        return defaultValueOperands($_op.getOperation());
      }]>
  ];
}

#endif // MP_PRECISION_INTERFACES_TD
