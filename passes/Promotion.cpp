//===- Promotion.cpp - implicit type promotion, made explicit -------------===//

#include "passes/Promotion.h"
#include "dialect/Graph/Graph.h"

using namespace mlir;
using namespace mlir::mp;

/// The element type of a float tensor with dimensions; null otherwise. A tensor
/// without dimensions does not promote one that has some.
static FloatType dimensionedFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() == 0)
    return {};
  return dyn_cast<FloatType>(type.getElementType());
}

bool mlir::mp::isImplicit(CastOp cast) {
  return cast->hasAttr(MPDialect::kImplicitAttrName);
}

/// A user's operator need not promote, whatever its kind.
static bool promotes(AtenOp op) {
  OpKind kind = op.getOpKind();
  return lookupOpRow(op.getCallee()) && !op.getEffects() &&
         op->getNumResults() == 1 && op->getNumOperands() > 1 &&
         (kind == OpKind::Pointwise || kind == OpKind::Monotone) &&
         dimensionedFloat(op->getResult(0));
}

/// True if an operand other than `except` brings in `type` without a promotion.
static bool bringsIn(AtenOp op, FloatType type) {
  return llvm::any_of(op->getOperands(), [&](Value value) {
    auto cast = value.getDefiningOp<CastOp>();
    bool promoted = cast && isImplicit(cast);
    return !promoted && dimensionedFloat(value) == type;
  });
}

void mlir::mp::makePromotionExplicit(AtenOp op) {
  if (!promotes(op))
    return;
  FloatType wide = dimensionedFloat(op->getResult(0));
  if (!bringsIn(op, wide))
    return; // the result is wide for another reason: a dtype argument
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    FloatType narrow = dimensionedFloat(operand.get());
    if (!narrow || narrow == wide || !isExactConversion(narrow, wide))
      continue;
    auto widening = CastOp::create(builder, derivedLocation(op.getLoc()),
                                   operand.get(), wide, CastOrigin::promotion);
    widening->setDiscardableAttr(MPDialect::kImplicitAttrName,
                                 builder.getUnitAttr());
    if (isBackward(op))
      widening->setDiscardableAttr(MPDialect::kBackwardAttrName,
                                   builder.getUnitAttr());
    operand.set(widening);
  }
}

void mlir::mp::makePromotionImplicit(AtenOp op) {
  if (!promotes(op))
    return;
  FloatType wide = dimensionedFloat(op->getResult(0));
  if (!bringsIn(op, wide))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    auto widening = operand.get().getDefiningOp<CastOp>();
    if (widening && isImplicit(widening) && widening.isExact() &&
        widening.getTo() == wide)
      operand.set(widening.getInput());
  }
}
