//===- Elementwise.cpp - operations that a sweep over memory can do -------===//

#include "dialect/IR/Elementwise.h"
#include "dialect/IR/Regions.h"

using namespace mlir;
using namespace mlir::mp;

static bool isElementwiseKind(OpKind kind) {
  return kind == OpKind::Sign || kind == OpKind::Monotone ||
         kind == OpKind::Pointwise || kind == OpKind::Activation ||
         kind == OpKind::Compare || kind == OpKind::Rounding;
}

/// Of the operators that move elements, those that leave each in its place.
static bool copiesInPlace(Operation *op) {
  StringRef name = stripOverload(frameworkCallee(op));
  return name == "aten.copy" || name == "aten.clone";
}

/// where and masked_fill: what chooses is a mask and no index.
static bool choosesByMask(Operation *op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<TensorType>(type);
    return !tensor || !tensor.getElementType().isInteger() ||
           tensor.getElementType().isInteger(1);
  });
}

bool mlir::mp::isElementwise(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !isMemoryEffectFree(op))
    return false;
  OpKind kind = precision.getOpKind();
  if (!isa<CastOp, RoundOp>(op) && !isElementwiseKind(kind) &&
      !copiesInPlace(op) && (kind != OpKind::Gather || !choosesByMask(op)))
    return false;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!result || result.getRank() == 0 || !result.hasStaticShape())
    return false;
  bool readsElements = false;
  for (Type type : op->getOperandTypes()) {
    auto operand = dyn_cast<RankedTensorType>(type);
    if (operand && operand.getRank() == 0)
      continue;
    // Another shape may be spread over the elements, or gathered from.
    if (!operand || operand.getShape() != result.getShape())
      return false;
    readsElements = true;
  }
  return readsElements;
}

LogicalResult ScaledUpdateOp::verify() {
  if (failed(verifyBody(*this)))
    return failure();
  // scaled_update_c3: one sweep can do it.
  for (Operation &op : getBody().front().without_terminator())
    if (!isElementwise(&op))
      return op.emitOpError(
          "in the body of a scaled_update is not elementwise");
  // scaled_update_c4: over arrays of one shape.
  for (Type type : getResultTypes())
    if (cast<RankedTensorType>(type).getShape() !=
        cast<RankedTensorType>(getResult(0).getType()).getShape())
      return emitOpError("results have several shapes");
  return success();
}
