//===- MPVerifiers.cpp - one check for each constraint of the spec --------===//

#include "dialect/IR/Arguments.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/TypeUtilities.h"

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

/// The first "%k" in `attr` that names no operand, or -1.
static int64_t findBadReference(Attribute attr, unsigned numOperands) {
  int64_t bad = -1;
  if (std::optional<unsigned> k = operandNumber(attr)) {
    if (*k >= numOperands)
      bad = *k;
  } else if (auto array = dyn_cast<ArrayAttr>(attr)) {
    for (auto it = array.begin(); it != array.end() && bad < 0; ++it)
      bad = findBadReference(*it, numOperands);
  } else if (auto dict = dyn_cast<DictionaryAttr>(attr)) {
    for (auto it = dict.begin(); it != dict.end() && bad < 0; ++it)
      bad = findBadReference(it->getValue(), numOperands);
  }
  return bad;
}

LogicalResult AtenOp::verify() {
  // aten_c1: namespace, operator and overload.
  if (getCallee().count('.') < 1)
    return emitOpError("callee '")
           << getCallee() << "' must name an overload, as in aten.mm.default";
  // aten_c2: arguments refer to operands that exist.
  if (DictionaryAttr args = getArgsAttr())
    if (int64_t k = findBadReference(args, getNumOperands()); k >= 0)
      return emitOpError("args refer to operand %")
             << k << ", of " << getNumOperands();
  return success();
}

LogicalResult MatmulOp::verify() {
  // matmul_c1: one operand type.
  Type lhs = getLhs().getType().getElementType();
  Type rhs = getRhs().getType().getElementType();
  if (lhs != rhs)
    return emitOpError("operand element types differ: ")
           << lhs << " and " << rhs;
  // matmul_c2: the result holds what the operands hold, or is as wide.
  Type out = getOutput().getType().getElementType();
  if (!isExactConversion(lhs, out))
    return emitOpError("result element type ")
           << out << " does not hold the operands' " << lhs;
  // matmul_c3: matrices, or batches of matrices.
  int64_t rank = getLhs().getType().getRank();
  if ((rank != 2 && rank != 3) || getRhs().getType().getRank() != rank ||
      getOutput().getType().getRank() != rank)
    return emitOpError("operands and result must all have rank 2 or all 3");
  // matmul_c4: the columns of one are the rows of the other.
  int64_t columns = getLhs().getType().getDimSize(rank - 1);
  int64_t rows = getRhs().getType().getDimSize(rank - 2);
  if (failed(verifyCompatibleShape({columns}, {rows})))
    return emitOpError("cannot multiply ")
           << columns << " columns with " << rows << " rows";
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
