//===- MatmulOperands.cpp - matrix products read halves -------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/Target.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

/// Longer chains of views than this are left alone.
static constexpr unsigned kMaxViews = 8;

/// The widening behind `operand`, perhaps seen through views (`w.float().t()`),
/// which are collected from the outermost inwards; null if there is none.
static CastOp findWidening(Value operand, MatmulOp op,
                           SmallVectorImpl<Operation *> &views) {
  while (auto view = operand.getDefiningOp<PrecisionOpInterface>()) {
    if (auto cast = dyn_cast<CastOp>(view.getOperation()))
      return cast;
    if (!view.isView() || view->getNumResults() != 1 ||
        view.getValueOperands() != SmallVector<unsigned>{0} ||
        !isMemoryEffectFree(view) || namesDtype(view) ||
        !inSamePhase(view, op) || views.size() == kMaxViews)
      return {};
    views.push_back(view);
    operand = view->getOperand(0);
  }
  return {};
}

/// The half value that `widening` widens, seen through copies of `views`.
static Value readHalf(CastOp widening, ArrayRef<Operation *> views,
                      PatternRewriter &rewriter) {
  Value value = widening.getInput();
  for (Operation *view : llvm::reverse(views)) {
    Operation *narrow = rewriter.clone(*view);
    narrow->setLoc(derivedLocation(view->getLoc()));
    narrow->setOperand(0, value);
    narrow->getResult(0).setType(resultIn(narrow, widening.getFrom()));
    value = narrow->getResult(0);
  }
  return value;
}

namespace {

/// matmul(widen(a), widen(b)) in f32 -> matmul(a, b) with an f32 result. The
/// product of two halves of one type is exact in f32, so only the order of the
/// sum can differ; the result is never rounded to half on the way.
struct MatmulHalfOperands : LoggedPattern<MatmulOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (keepsTypes(op))
      return rewriter.notifyMatchFailure(op, "a pin keeps its types");
    SmallVector<Operation *> lhsViews, rhsViews;
    CastOp lhs = findWidening(op.getLhs(), op, lhsViews);
    CastOp rhs = findWidening(op.getRhs(), op, rhsViews);
    if (!lhs || !rhs)
      return rewriter.notifyMatchFailure(op, "operands are not casts");
    if (!isHalf(lhs.getFrom()) || lhs.getFrom() != rhs.getFrom())
      return rewriter.notifyMatchFailure(op,
                                         "operands are not of one half type");
    if (!lhs.getTo().isF32())
      return rewriter.notifyMatchFailure(op, "operands are not widened to f32");
    if (op.getBias())
      return rewriter.notifyMatchFailure(op, "bias would need the half type");
    if (!inSamePhase(lhs, op) || !inSamePhase(rhs, op))
      return rewriter.notifyMatchFailure(op, "phases differ");
    auto func = op->getParentOfType<func::FuncOp>();
    if (!targetOf(func).hasHalfMatmulWithF32Result) {
      log.miss(Rule::MatmulHalfOperands, op,
               "target " + targetOf(func).name +
                   " has no matrix product of halves with an f32 result");
      return rewriter.notifyMatchFailure(op, "target cannot");
    }
    if (!log.apply(Rule::MatmulHalfOperands, op,
                   describe(lhs) + " adds nothing to either operand"))
      return limitReached(op, rewriter);
    Value left = readHalf(lhs, lhsViews, rewriter);
    Value right = readHalf(rhs, rhsViews, rewriter);
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(left);
      op.getRhsMutable().assign(right);
    });
    return success();
  }
};

} // namespace

void mlir::mp::populateMatmulOperandPatterns(RewritePatternSet &patterns,
                                             RewriteLog &log) {
  patterns.add<MatmulHalfOperands>(patterns.getContext(), log);
}
