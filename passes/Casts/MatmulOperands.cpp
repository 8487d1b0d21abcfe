//===- MatmulOperands.cpp - matrix products read halves -------------------===//

#include "dialect/IR/Target.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

namespace {

/// matmul(widen(a), widen(b)) in f32 -> matmul(a, b) with an f32 result. The
/// product of two halves of one type is exact in f32, so only the order of the
/// sum can differ; the result is never rounded to half on the way.
struct MatmulHalfOperands : LoggedPattern<MatmulOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto lhs = op.getLhs().getDefiningOp<CastOp>();
    auto rhs = op.getRhs().getDefiningOp<CastOp>();
    if (!lhs || !rhs)
      return rewriter.notifyMatchFailure(op, "operands are not casts");
    if (!isHalf(lhs.getFrom()) || lhs.getFrom() != rhs.getFrom())
      return rewriter.notifyMatchFailure(op, "operands are not of one half type");
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
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(lhs.getInput());
      op.getRhsMutable().assign(rhs.getInput());
    });
    return success();
  }
};

} // namespace

void mlir::mp::populateMatmulOperandPatterns(RewritePatternSet &patterns,
                                             RewriteLog &log) {
  patterns.add<MatmulHalfOperands>(patterns.getContext(), log);
}
