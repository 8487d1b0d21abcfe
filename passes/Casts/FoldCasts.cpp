//===- FoldCasts.cpp - conversions that cancel or merge -------------------===//

#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

namespace {

/// cast(x : T to T) -> x
struct FoldSameType : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "types differ");
    if (wouldAlias(op.getOutput(), op.getInput()))
      return rewriter.notifyMatchFailure(op, "an output would be no copy");
    if (!log.apply(Rule::FoldSameType, op, describe(op)))
      return limitReached(op, rewriter);
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

/// cast(cast(x : A to B) : B to A) -> x, if A to B is exact. Through a narrower
/// B the value was rounded; through the other half type it was rounded too.
struct FoldExactRoundTrip : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is not a cast");
    if (!inner.isExact())
      return rewriter.notifyMatchFailure(op, "inner cast rounds");
    if (inner.getInput().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "does not go back to its type");
    if (wouldAlias(op.getOutput(), inner.getInput()))
      return rewriter.notifyMatchFailure(op, "an output would be no copy");
    if (!log.apply(Rule::FoldExactRoundTrip, op,
                   describe(inner) + " is exact and " + describe(op) +
                       " goes back"))
      return limitReached(op, rewriter);
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// cast(cast(x : A to B) : B to C) -> cast(x : A to C), if A to B is exact. The
/// rounding to C is the same one, so its origin stays.
struct MergeAfterExact : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is not a cast");
    if (!inner.isExact())
      return rewriter.notifyMatchFailure(op, "inner cast rounds");
    if (inner.getInput().getType() == op.getType())
      return rewriter.notifyMatchFailure(op, "cancels, FoldExactRoundTrip");
    if (!inSamePhase(op, inner))
      return rewriter.notifyMatchFailure(op, "phases differ");
    // -1 from i8 to ui8 is 255, through f32 it is whatever the machine does.
    if (!isa<FloatType>(inner.getFrom()) && !isa<FloatType>(op.getTo()))
      return rewriter.notifyMatchFailure(op, "from integer to integer");
    if (!log.apply(Rule::MergeAfterExact, op, describe(inner) + " is exact"))
      return limitReached(op, rewriter);
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(inner.getInput()); });
    return success();
  }
};

} // namespace

void mlir::mp::populateFoldCastPatterns(RewritePatternSet &patterns,
                                        RewriteLog &log) {
  patterns.add<FoldSameType, FoldExactRoundTrip, MergeAfterExact>(
      patterns.getContext(), log);
}
