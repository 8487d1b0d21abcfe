//===- Lower.cpp - mp-lower -----------------------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/Pins.h"
#include "dialect/IR/Regions.h"
#include "passes/Passes.h"
#include "passes/Promotion.h"

namespace mlir::mp {
#define GEN_PASS_DEF_LOWER
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// The overloads `dtype` of mm and its kin name the result type.
static DictionaryAttr frameworkArgs(Operation *op, StringRef callee) {
  if (!callee.ends_with(".dtype") || !isa<MatmulOp>(op))
    return op->getAttrOfType<DictionaryAttr>("args");
  Builder builder(op->getContext());
  Type type = cast<MatmulOp>(op).getOutput().getType().getElementType();
  return builder.getDictionaryAttr(
      builder.getNamedAttr("out_dtype", TypeAttr::get(type)));
}

namespace {
struct Lower : mp::impl::LowerBase<Lower> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Block &body = getOperation().getBody().front();
    for (ScaledUpdateOp op :
         llvm::make_early_inc_range(body.getOps<ScaledUpdateOp>()))
      inlineBody(op);
    for (Operation &op :
         llvm::make_early_inc_range(body.without_terminator())) {
      if (auto round = dyn_cast<RoundOp>(op))
        lowerRounding(round);
      else if (!isa<AtenOp, CastOp>(op) && !frameworkCallee(&op).empty())
        lowerOperator(&op);
    }
    for (AtenOp op : getOperation().getOps<AtenOp>())
      makePromotionImplicit(op);
    for (CastOp op :
         llvm::make_early_inc_range(getOperation().getOps<CastOp>()))
      finishPromotion(op);
  }

private:
  /// One that the operator no longer does by itself is a conversion for good.
  static void finishPromotion(CastOp op) {
    if (!isImplicit(op))
      return;
    if (op->use_empty())
      return op->erase();
    op->removeDiscardableAttr(MPDialect::kImplicitAttrName);
  }

  static void lowerOperator(Operation *op) {
    OpBuilder builder(op);
    StringRef callee = frameworkCallee(op);
    auto aten =
        AtenOp::create(builder, op->getLoc(), op->getResultTypes(), callee,
                       frameworkOperands(op), frameworkArgs(op, callee),
                       /*effects=*/false);
    aten->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    // The framework's bias comes first.
    if (auto matmul = dyn_cast<MatmulOp>(op); matmul && matmul.getBias())
      renumberPinnedOperands(aten, {1, 2, 0});
    op->replaceAllUsesWith(aten);
    op->erase();
  }

  static void lowerRounding(RoundOp op) {
    OpBuilder builder(op);
    auto narrowing =
        CastOp::create(builder, derivedLocation(op.getLoc()), op.getInput(),
                       op.getFormat(), op.getOrigin());
    auto widening = CastOp::create(builder, op.getLoc(), narrowing.getOutput(),
                                   op.getOutput().getType().getElementType(),
                                   op.getOrigin());
    for (CastOp cast : {narrowing, widening})
      cast->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    narrowing->removeDiscardableAttr(MPDialect::kPinAttrName);
    op.replaceAllUsesWith(widening.getOutput());
    op.erase();
  }
};
} // namespace
