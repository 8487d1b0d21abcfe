//===- DropRoundings.cpp - roundings that autocast inserted ---------------===//

#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

/// True if a reader that can tell a rounded value from an unrounded one is
/// reached from `value` through data movement.
static bool isObserved(Value value, unsigned depth = 0) {
  // Movement chains are short; a longer one is not worth the search.
  if (depth > 8)
    return true;
  for (OpOperand &use : value.getUses()) {
    auto reader = dyn_cast<PrecisionOpInterface>(use.getOwner());
    if (!reader)
      continue; // a graph output, of a type that does not change
    if (reader.observesRounding(use.getOperandNumber()))
      return true;
    if (!reader.commutesWithRounding())
      continue;
    for (Value result : reader->getResults())
      if (isObserved(result, depth + 1))
        return true;
  }
  return false;
}

/// True if dropping would make forward keep a wide value for backward where it
/// kept a narrow one.
static bool lengthensLifetime(CastOp narrowing, ArrayRef<CastOp> widenings) {
  if (isBackward(narrowing))
    return false;
  bool readInBackward = llvm::any_of(
      widenings, [](CastOp widening) { return isBackward(widening); });
  if (!readInBackward)
    return false;
  return llvm::none_of(narrowing.getInput().getUsers(),
                       [](Operation *user) { return isBackward(user); });
}

namespace {

/// widen(narrow(x)) -> x, where autocast asked for the narrowing and every
/// reader widens it again to the type of x: all of them see the same value.
struct DropAutocastRounding : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    if (!isNarrowing(op))
      return rewriter.notifyMatchFailure(op, "does not round");
    SmallVector<CastOp> widenings;
    for (Operation *user : op->getUsers()) {
      auto widening = dyn_cast<CastOp>(user);
      if (!widening || widening.getType() != op.getInput().getType())
        return rewriter.notifyMatchFailure(op, "a reader wants the half value");
      widenings.push_back(widening);
    }
    if (widenings.empty())
      return rewriter.notifyMatchFailure(op, "nobody widens it again");
    if (failed(mayDrop(op, widenings, rewriter)))
      return failure();
    if (!log.apply(Rule::DropAutocastRounding, op,
                   describe(op) + " of " +
                       stringifyCastOrigin(op.getOrigin()) +
                       " is widened again by every reader"))
      return limitReached(op, rewriter);
    for (CastOp widening : widenings)
      rewriter.replaceOp(widening, op.getInput());
    rewriter.eraseOp(op);
    return success();
  }

private:
  LogicalResult mayDrop(CastOp op, ArrayRef<CastOp> widenings,
                        PatternRewriter &rewriter) const {
    auto refuse = [&](const Twine &why) {
      log.miss(Rule::DropAutocastRounding, op, why);
      return rewriter.notifyMatchFailure(op, why);
    };
    if (op.getOrigin() == CastOrigin::user)
      return refuse("the user wrote this rounding: contract strict");
    if (llvm::any_of(widenings,
                     [](CastOp cast) { return isObserved(cast.getOutput()); }))
      return refuse("a comparison, index or integer conversion reads it");
    if (lengthensLifetime(op, widenings))
      return refuse("backward would keep " + describe(widenings.front()) +
                    " wide: saved bytes would grow");
    return success();
  }
};

} // namespace

void mlir::mp::populateDropRoundingPatterns(RewritePatternSet &patterns,
                                            RewriteLog &log) {
  patterns.add<DropAutocastRounding>(patterns.getContext(), log);
}
