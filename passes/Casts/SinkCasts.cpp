//===- SinkCasts.cpp - widenings move towards readers ---------------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

namespace {

/// move(widen(x)) -> widen(move(x)): the movement copies half the bytes. All
/// operands that carry values must be widenings of one type.
struct SinkWidening : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    if (!isWidening(op))
      return rewriter.notifyMatchFailure(op, "does not widen");
    for (Operation *user : op->getUsers())
      if (succeeded(sinkOver(user, op, rewriter)))
        return success();
    return rewriter.notifyMatchFailure(op, "no reader to sink over");
  }

private:
  LogicalResult sinkOver(Operation *user, CastOp op,
                         PatternRewriter &rewriter) const {
    auto moved = dyn_cast<PrecisionOpInterface>(user);
    if (!moved || !moved.isDataMovement() || moved->getNumResults() != 1 ||
        !isa<RankedTensorType>(moved->getResult(0).getType()) ||
        !isMemoryEffectFree(moved))
      return rewriter.notifyMatchFailure(op, "reader does not move data");
    if (moved.isView() && !meetsNarrowing(moved, op))
      return rewriter.notifyMatchFailure(op, "a view copies nothing");
    if (!inSamePhase(op, moved))
      return rewriter.notifyMatchFailure(op, "phases differ");
    if (keepsTypes(moved))
      return rewriter.notifyMatchFailure(op, "a pin keeps the reader's types");
    if (namesDtype(moved) || !hasExactFillers(moved, op.getFrom()))
      return rewriter.notifyMatchFailure(op, "a filler would be rounded");
    SmallVector<unsigned> operands = moved.getValueOperands();
    if (operands.empty())
      return rewriter.notifyMatchFailure(op, "operand types are mixed");
    for (unsigned i : operands)
      if (!isOnlyFor(moved->getOperand(i), moved, op.getFrom()))
        return rewriter.notifyMatchFailure(op, "an operand stays wide");
    if (!log.apply(Rule::SinkWidening, op,
                   describe(op) + " under " + frameworkCallee(moved) +
                       (moved.isView() ? ", to cancel with a narrowing"
                                       : ", which then copies fewer bytes")))
      return limitReached(op, rewriter);
    sink(moved, op, operands, rewriter);
    return success();
  }

  /// True for a widening from `from` that nothing but `moved` reads.
  static bool isOnlyFor(Value value, Operation *moved, Type from) {
    auto widening = value.getDefiningOp<CastOp>();
    return widening && isWidening(widening) && widening.getFrom() == from &&
           llvm::all_of(widening->getUsers(),
                        [&](Operation *user) { return user == moved; });
  }

  /// A view is worth crossing only towards a conversion that then cancels.
  static bool meetsNarrowing(Operation *moved, CastOp op) {
    return llvm::any_of(moved->getUsers(), [&](Operation *user) {
      auto narrowing = dyn_cast<CastOp>(user);
      return narrowing && narrowing.getTo() == op.getFrom();
    });
  }

  static void sink(Operation *moved, CastOp op, ArrayRef<unsigned> operands,
                   PatternRewriter &rewriter) {
    Type wide = op.getTo();
    rewriter.setInsertionPointAfter(moved);
    auto widened = CastOp::create(rewriter, derivedLocation(op.getLoc()),
                                  moved->getResult(0), wide, op.getOrigin());
    rewriter.modifyOpInPlace(widened, [&] {
      widened->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    });
    Type narrow = op.getFrom();
    rewriter.replaceAllUsesExcept(moved->getResult(0), widened, widened);
    rewriter.modifyOpInPlace(moved, [&] {
      for (unsigned i : operands) {
        auto cast = moved->getOperand(i).getDefiningOp<CastOp>();
        moved->setOperand(i, cast.getInput());
      }
      moved->getResult(0).setType(resultIn(moved, narrow));
    });
  }
};

} // namespace

void mlir::mp::populateSinkCastPatterns(RewritePatternSet &patterns,
                                        RewriteLog &log) {
  patterns.add<SinkWidening>(patterns.getContext(), log);
}
