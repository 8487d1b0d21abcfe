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

/// A view that reads elements of one operand, so that it can as well read them
/// unrounded.
static bool passesOn(Operation *op, CastOp narrowing) {
  auto view = dyn_cast<PrecisionOpInterface>(op);
  return view && view.isView() && !isa<CastOp, MaterializeOp>(op) &&
         op->getNumResults() == 1 && op->getNumOperands() == 1 &&
         isMemoryEffectFree(op) && inSamePhase(op, narrowing) &&
         !namesDtype(op) && !keepsTypes(op);
}

namespace {

/// Everything that reads a rounded value, if all of it ends in widenings.
struct RoundedReaders {
  SmallVector<CastOp> widenings;
  SmallVector<Operation *> views;

  /// Why one of the readers is no such widening; empty if all are.
  llvm::StringRef collect(CastOp narrowing);

private:
  static llvm::StringRef whyNotDropped(CastOp widening, CastOp narrowing);
};

} // namespace

llvm::StringRef RoundedReaders::whyNotDropped(CastOp widening,
                                              CastOp narrowing) {
  if (widening.getTo() != narrowing.getFrom())
    return "a reader wants the half value";
  if (!widening.isExact())
    return "two half types in one chain";
  bool cancels = llvm::any_of(widening->getUsers(), [&](Operation *reader) {
    return isa<CastOp>(reader) && roundedFormat(reader) == narrowing.getTo();
  });
  return cancels ? "cancels, FoldExactRoundTrip" : "";
}

llvm::StringRef RoundedReaders::collect(CastOp narrowing) {
  SmallVector<Value> pending = {narrowing.getOutput()};
  while (!pending.empty()) {
    for (Operation *user : pending.pop_back_val().getUsers()) {
      if (auto widening = dyn_cast<CastOp>(user)) {
        if (auto why = whyNotDropped(widening, narrowing); !why.empty())
          return why;
        widenings.push_back(widening);
        continue;
      }
      if (!passesOn(user, narrowing) || views.size() == kMaxMoved)
        return "a reader wants the half value";
      views.push_back(user);
      pending.push_back(user->getResult(0));
    }
  }
  return widenings.empty() ? "nobody widens it again" : "";
}

namespace {

/// widen(narrow(x)) -> x, also with views between, where autocast asked for the
/// narrowing and every reader widens it again to the type of x: all of them see
/// the same value.
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
    RoundedReaders readers;
    if (llvm::StringRef why = readers.collect(op); !why.empty())
      return rewriter.notifyMatchFailure(op, why);
    if (failed(mayDrop(op, readers.widenings, rewriter)))
      return failure();
    if (!log.apply(Rule::DropAutocastRounding, op,
                   describe(op) + " of " + stringifyCastOrigin(op.getOrigin()) +
                       " is widened again by every reader"))
      return limitReached(op, rewriter);
    drop(op, readers, rewriter);
    return success();
  }

private:
  static void drop(CastOp op, const RoundedReaders &readers,
                   PatternRewriter &rewriter) {
    Type wide = op.getFrom();
    rewriter.replaceOp(op, op.getInput());
    for (Operation *view : readers.views)
      rewriter.modifyOpInPlace(
          view, [&] { view->getResult(0).setType(resultIn(view, wide)); });
    for (CastOp widening : readers.widenings)
      rewriter.replaceOp(widening, widening.getInput());
  }

  LogicalResult mayDrop(CastOp op, ArrayRef<CastOp> widenings,
                        PatternRewriter &rewriter) const {
    auto refuse = [&](const Twine &why) {
      log.miss(Rule::DropAutocastRounding, op, why);
      return rewriter.notifyMatchFailure(op, why);
    };
    if (op.getOrigin() == CastOrigin::user)
      return refuse("the user wrote this rounding: contract strict");
    if (op.getOrigin() == CastOrigin::mpopt)
      return refuse("another pass put this rounding here");
    if (numbers.isRoundedElsewhere(op.getInput(), op.getTo(), op))
      return refuse("another phase reads the same rounding");
    if (llvm::any_of(widenings, [&](CastOp cast) {
          return isObserved(cast.getOutput(), op.getTo());
        }))
      return refuse("a comparison, index or integer conversion reads it");
    if (llvm::any_of(widenings,
                     [&](CastOp cast) {
                       return wouldAlias(cast.getOutput(), op.getInput());
                     }) ||
        llvm::count_if(widenings, [](CastOp cast) {
          return reachesOutput(cast.getOutput());
        }) > 1)
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
