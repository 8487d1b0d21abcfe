//===- DropRoundings.cpp - roundings that autocast inserted ---------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Casts/ValueNumbers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::mp;

/// Movement chains are short; more operators are not worth the search.
static constexpr unsigned kMaxMoved = 64;

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
      bool isPassedOn = reader && (reader.isView() || isa<CastOp>(user) ||
                                   isFusibleKind(reader.getOpKind()));
      if (isPassedOn && seen.insert(user).second)
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
  DropAutocastRounding(MLIRContext *context, RewriteLog &log,
                       ValueNumbers &numbers)
      : LoggedPattern(context, log), numbers(numbers) {}

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    if (!isNarrowing(op))
      return rewriter.notifyMatchFailure(op, "does not round");
    if (isRoundedAlready(op))
      return rewriter.notifyMatchFailure(op, "cancels, FoldRoundedRoundTrip");
    SmallVector<CastOp> widenings;
    for (Operation *user : op->getUsers()) {
      auto widening = dyn_cast<CastOp>(user);
      if (!widening || widening.getType() != op.getInput().getType())
        return rewriter.notifyMatchFailure(op, "a reader wants the half value");
      if (!widening.isExact())
        return rewriter.notifyMatchFailure(op, "two half types in one chain");
      if (llvm::any_of(widening->getUsers(), [&](Operation *reader) {
            return isa<CastOp>(reader) && roundedFormat(reader) == op.getTo();
          }))
        return rewriter.notifyMatchFailure(op, "cancels, FoldExactRoundTrip");
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
    if (numbers.isRoundedElsewhere(op.getInput(), op.getTo(), op))
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

  ValueNumbers &numbers;
};

} // namespace

void mlir::mp::populateDropRoundingPatterns(RewritePatternSet &patterns,
                                            RewriteLog &log,
                                            ValueNumbers &numbers) {
  patterns.add<DropAutocastRounding>(patterns.getContext(), log, numbers);
}
