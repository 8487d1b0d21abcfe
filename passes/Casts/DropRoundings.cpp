//===- DropRoundings.cpp - roundings that autocast inserted ---------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Casts/CastPatterns.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::mp;

/// Movement chains are short; more operators are not worth the search.
static constexpr unsigned kMaxMoved = 64;

/// The format that a conversion or rounding between floats rounds to; null for
/// other operations.
static Type roundedFormat(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return isNarrowing(cast) || isWidening(cast) ? cast.getTo() : Type();
  if (auto round = dyn_cast<RoundOp>(op))
    return round.getFormat();
  return {};
}

/// True if a reader that can tell a value rounded to `format` from an unrounded
/// one is reached from `value` through operators that pass its elements on. A
/// second rounding to the same format makes both the same; one to another does
/// not.
static bool isObserved(Value value, Type format) {
  SmallVector<Value> pending = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!pending.empty()) {
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      if (isa<func::ReturnOp>(use.getOwner()))
        continue; // a graph output, of a type that does not change
      auto reader = dyn_cast<PrecisionOpInterface>(use.getOwner());
      if (!reader || reader.observesRounding(use.getOperandNumber()))
        return true;
      Type rounded = roundedFormat(reader);
      if (rounded == format)
        continue;
      if (!rounded && !reader.commutesWithRounding() &&
          !reader.selectsByOrder())
        continue;
      if (!seen.insert(reader).second)
        continue;
      if (seen.size() > kMaxMoved)
        return true;
      pending.append(reader->result_begin(), reader->result_end());
    }
  }
  return false;
}

/// True if the same value is rounded to the same format once more, for another
/// phase: its readers would go on seeing the rounded value.
static bool isRoundedTwice(CastOp narrowing) {
  return llvm::any_of(narrowing.getInput().getUsers(), [&](Operation *user) {
    auto other = dyn_cast<CastOp>(user);
    return other && other != narrowing && other.getTo() == narrowing.getTo();
  });
}

static bool isLater(Operation *op, CastOp than) {
  return !isa<func::ReturnOp>(op) && !inSamePhase(op, than);
}

/// True if a later phase reads `value` or what it could compute again from it:
/// then it is the narrow value that is worth keeping until there.
static bool isKeptFor(Value value, CastOp narrowing) {
  SmallVector<Value> pending = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!pending.empty()) {
    for (Operation *user : pending.pop_back_val().getUsers()) {
      if (isLater(user, narrowing) || seen.size() > kMaxMoved)
        return true;
      auto reader = dyn_cast<PrecisionOpInterface>(user);
      if (reader && (reader.isView() || isFusibleKind(reader.getOpKind())) &&
          seen.insert(user).second)
        pending.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

/// True if dropping would make forward keep a wide value for backward where it
/// could keep a narrow one and widen it there again.
static bool lengthensLifetime(CastOp narrowing, ArrayRef<CastOp> widenings) {
  bool isKept = llvm::any_of(widenings, [&](CastOp widening) {
    return isLater(widening, narrowing) ||
           isKeptFor(widening.getOutput(), narrowing);
  });
  return isKept &&
         llvm::none_of(narrowing.getInput().getUsers(), [&](Operation *user) {
           return isLater(user, narrowing);
         });
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
      if (!widening.isExact())
        return rewriter.notifyMatchFailure(op, "two half types in one chain");
      widenings.push_back(widening);
    }
    if (widenings.empty())
      return rewriter.notifyMatchFailure(op, "nobody widens it again");
    if (failed(mayDrop(op, widenings, rewriter)))
      return failure();
    if (!log.apply(Rule::DropAutocastRounding, op,
                   describe(op) + " of " + stringifyCastOrigin(op.getOrigin()) +
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
    if (isRoundedTwice(op))
      return refuse("another phase reads the same rounding");
    if (llvm::any_of(widenings, [&](CastOp cast) {
          return isObserved(cast.getOutput(), op.getTo());
        }))
      return refuse("a comparison, index or integer conversion reads it");
    if (llvm::any_of(widenings, [&](CastOp cast) {
          return wouldAlias(cast.getOutput(), op.getInput());
        }))
      return refuse("an output would be no copy of its own");
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
