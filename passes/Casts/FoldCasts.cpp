//===- FoldCasts.cpp - conversions that cancel or merge -------------------===//

#include "passes/Casts/CastPatterns.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::mp;

/// The user's rounding found its value rounded already: whoever asked for that
/// rounding, it is now the user's too, and nobody may drop it.
static void keepForUser(Value value, PatternRewriter &rewriter) {
  SmallVector<Value> pending = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  auto user = CastOriginAttr::get(value.getContext(), CastOrigin::user);
  while (!pending.empty()) {
    Operation *producer = pending.pop_back_val().getDefiningOp();
    if (!producer || !seen.insert(producer).second)
      continue;
    if (auto cast = dyn_cast<CastOp>(producer)) {
      if (isNarrowing(cast))
        rewriter.modifyOpInPlace(cast, [&] { cast.setOriginAttr(user); });
      else
        pending.push_back(cast.getInput());
    } else if (auto round = dyn_cast<RoundOp>(producer)) {
      rewriter.modifyOpInPlace(round, [&] { round.setOriginAttr(user); });
    } else if (auto moved = dyn_cast<PrecisionOpInterface>(producer);
               moved && moved.commutesWithRounding()) {
      for (unsigned i : moved.getValueOperands())
        pending.push_back(producer->getOperand(i));
    }
  }
}

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

/// Replaces an operation that changes no value of an earlier one by that one.
template <typename Op>
struct RoundTripPattern : LoggedPattern<Op> {
  using LoggedPattern<Op>::LoggedPattern;

  /// `askedBy` is the origin of the rounding that finds `value` rounded
  /// already.
  LogicalResult goBack(Op op, Value value, CastOrigin askedBy, const Twine &why,
                       PatternRewriter &rewriter) const {
    if (wouldAlias(op.getOutput(), value))
      return rewriter.notifyMatchFailure(op, "an output would be no copy");
    if (!this->log.apply(Rule::FoldExactRoundTrip, op, why))
      return this->limitReached(op, rewriter);
    if (askedBy == CastOrigin::user)
      keepForUser(value, rewriter);
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// cast(cast(x : A to B) : B to A) -> x, if A to B is exact. Through a narrower
/// B the value was rounded; through the other half type it was rounded too.
struct FoldExactRoundTrip : RoundTripPattern<CastOp> {
  using RoundTripPattern::RoundTripPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is not a cast");
    if (!inner.isExact())
      return rewriter.notifyMatchFailure(op, "inner cast rounds");
    if (inner.getInput().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "does not go back to its type");
    return goBack(op, inner.getInput(), op.getOrigin(),
                  describe(inner) + " is exact and " + describe(op) +
                      " goes back",
                  rewriter);
  }
};

/// round(widen(x : F to T) to F) -> widen(x): there is nothing to round.
struct FoldExactRounding : RoundTripPattern<RoundOp> {
  using RoundTripPattern::RoundTripPattern;

  LogicalResult matchAndRewrite(RoundOp op,
                                PatternRewriter &rewriter) const override {
    auto widening = op.getInput().getDefiningOp<CastOp>();
    if (!widening || !widening.isExact())
      return rewriter.notifyMatchFailure(op, "operand is not widened");
    if (!isExactConversion(widening.getFrom(), op.getFormat()))
      return rewriter.notifyMatchFailure(op, "the format holds less");
    return goBack(op, op.getInput(), op.getOrigin(),
                  describe(widening) + " of a value that is rounded already",
                  rewriter);
  }
};

/// widen(narrow(round(x to F) to F)) -> round(x to F): rounded already.
struct FoldRoundedRoundTrip : RoundTripPattern<CastOp> {
  using RoundTripPattern::RoundTripPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner || !isNarrowing(inner))
      return rewriter.notifyMatchFailure(op, "operand is not narrowed");
    if (inner.getInput().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "does not go back to its type");
    if (!isRoundedAlready(inner))
      return rewriter.notifyMatchFailure(op, "the inner cast rounds");
    return goBack(op, inner.getInput(), inner.getOrigin(),
                  describe(inner) + " of a value that is rounded already",
                  rewriter);
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
  patterns.add<FoldSameType, FoldExactRoundTrip, FoldExactRounding,
               FoldRoundedRoundTrip, MergeAfterExact>(patterns.getContext(),
                                                      log);
}
