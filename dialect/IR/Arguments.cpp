//===- Arguments.cpp - what a traced call passes --------------------------===//

#include "dialect/IR/Arguments.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

std::optional<unsigned> mlir::mp::operandNumber(Attribute attr) {
  auto text = dyn_cast_if_present<StringAttr>(attr);
  StringRef rest = text ? text.getValue() : StringRef();
  unsigned k = 0;
  if (!rest.consume_front("%") || rest.getAsInteger(10, k))
    return std::nullopt;
  return k;
}

Value mlir::mp::operandOf(Operation *op, Attribute attr) {
  std::optional<unsigned> k = operandNumber(attr);
  return k && *k < op->getNumOperands() ? op->getOperand(*k) : Value();
}
