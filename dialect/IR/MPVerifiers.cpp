//===- MPVerifiers.cpp - one check for each constraint of the spec --------===//

#include "dialect/IR/MPOps.h"

using namespace mlir;
using namespace mlir::mp;

LogicalResult RoundOp::verify() {
  // round_c1: the format must be able to change a value.
  Type element = getInput().getType().getElementType();
  if (!isa<FloatType>(getFormat()))
    return emitOpError("format must be a float type, found ") << getFormat();
  if (isExactConversion(element, getFormat()))
    return emitOpError("rounding ")
           << element << " to " << getFormat() << " changes no value";
  // round_c2: the rounded value must have a place in the type it keeps.
  if (!isExactConversion(getFormat(), element))
    return emitOpError("type ")
           << element << " does not hold every " << getFormat();
  return success();
}

LogicalResult AtenOp::verify() {
  // aten_c1: namespace, operator and overload.
  if (getCallee().count('.') < 1)
    return emitOpError("callee '")
           << getCallee() << "' must name an overload, as in aten.mm.default";
  return success();
}

LogicalResult MatmulOp::verify() {
  // matmul_c1: one operand type.
  Type lhs = getLhs().getType().getElementType();
  Type rhs = getRhs().getType().getElementType();
  if (lhs != rhs)
    return emitOpError("operand element types differ: ") << lhs << " and " << rhs;
  // matmul_c2: the result holds what the operands hold, or is as wide.
  Type out = getOutput().getType().getElementType();
  if (!isExactConversion(lhs, out))
    return emitOpError("result element type ")
           << out << " does not hold the operands' " << lhs;
  return success();
}

/// raised_c1: as many results as the operator returns.
static LogicalResult verifyResults(Operation *op, unsigned expected) {
  if (op->getNumResults() == expected)
    return success();
  return op->emitOpError("expects ")
         << expected << " results, found " << op->getNumResults();
}

#define MP_RAISED_OP(CLASS, CALLEE, RESULTS)                                   \
  LogicalResult CLASS::verify() { return verifyResults(*this, RESULTS); }
#include "dialect/IR/RaisedOps.def"
