//===- HoistCasts.cpp - narrowings move towards definitions ---------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

/// True if a conversion of `value` to `elementType` would cancel or merge with
/// the exact widening that made it.
static bool meetsWidening(Value value, Type elementType) {
  auto inner = value.getDefiningOp<CastOp>();
  return inner && isWidening(inner) &&
         isExactConversion(inner.getFrom(), elementType);
}

/// The same, seen through views that the conversion can pass as well. A longer
/// chain of views than this is not worth the search.
static bool leadsToWidening(Value value, Type elementType, Operation *op) {
  for (unsigned views = 0; views != 16; ++views) {
    if (meetsWidening(value, elementType))
      return true;
    auto view = value.getDefiningOp<PrecisionOpInterface>();
    if (!view || !view.isView() || view->getNumResults() != 1 ||
        !isMemoryEffectFree(view) || !inSamePhase(view, op))
      return false;
    SmallVector<unsigned> operands = view.getValueOperands();
    if (operands.size() != 1 || namesDtype(view))
      return false;
    value = view->getOperand(operands.front());
  }
  return false;
}

/// True if rounding to `type` before `moved` gives the same bits as after it.
static bool commutes(PrecisionOpInterface moved, ArrayRef<unsigned> operands,
                     FloatType type) {
  if (moved.commutesWithRounding())
    return true;
  return moved.selectsByOrder() && llvm::all_of(operands, [&](unsigned i) {
           return meetsWidening(moved->getOperand(i), type);
         });
}

/// True if `value` has another conversion to `elementType` in the same phase.
static bool meetsEqualCast(Value value, Type elementType, Operation *except) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto other = dyn_cast<CastOp>(user);
    return other && other != except && other.getTo() == elementType &&
           isBackward(other) == isBackward(except);
  });
}

/// True if the conversion joins the kernel that computes `value`.
static bool joinsProducer(Value value) {
  auto producer = value.getDefiningOp<PrecisionOpInterface>();
  return producer && isFusibleKind(producer.getOpKind());
}

static bool growsUnderHoist(Operation *moved, unsigned operand) {
  auto before = staticNumElements(moved->getOperand(operand).getType());
  auto after = staticNumElements(moved->getResult(0).getType());
  // With a dynamic size only a view keeps the number of elements for sure, and
  // not even each of those; refuse.
  return !before || !after || *before > *after;
}

namespace {

/// cast(move(x) : A to B) -> move(cast(x : A to B)), where move copies or renames
/// elements or changes their signs: rounding each first gives the same bits. Also
/// over min, max and relu of values that B holds, which are not rounded at all.
struct HoistNarrowing : LoggedPattern<CastOp> {
  using LoggedPattern::LoggedPattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    if (!isNarrowing(op))
      return rewriter.notifyMatchFailure(op, "does not narrow");
    auto moved = op.getInput().getDefiningOp<PrecisionOpInterface>();
    if (!moved || moved->getNumResults() != 1 || !isMemoryEffectFree(moved))
      return rewriter.notifyMatchFailure(op, "operand is not a pure operator");
    SmallVector<unsigned> operands = moved.getValueOperands();
    if (operands.empty())
      return rewriter.notifyMatchFailure(op, "no operand carries the values");
    if (!commutes(moved, operands, cast<FloatType>(op.getTo())))
      return rewriter.notifyMatchFailure(op, "does not commute with rounding");
    if (!inSamePhase(op, moved))
      return rewriter.notifyMatchFailure(op, "phases differ");
    if (!moved->hasOneUse() && !moved.isView())
      return rewriter.notifyMatchFailure(op, "would be computed twice");
    if (namesDtype(moved) || !hasExactFillers(moved, op.getTo()))
      return rewriter.notifyMatchFailure(op, "a filler would be rounded");
    std::string why;
    if (!pays(op, moved, operands, why))
      return rewriter.notifyMatchFailure(op, "would not store fewer bytes");
    if (!log.apply(Rule::HoistNarrowing, op, why))
      return limitReached(op, rewriter);
    hoist(op, moved, operands, rewriter);
    return success();
  }

private:
  /// Worth it when the conversion disappears at the other side, or joins a
  /// kernel without converting more elements than before.
  static bool pays(CastOp op, PrecisionOpInterface moved,
                   ArrayRef<unsigned> operands, std::string &why) {
    std::string name = frameworkCallee(moved).str();
    if (llvm::any_of(operands, [&](unsigned i) {
          return leadsToWidening(moved->getOperand(i), op.getTo(), op);
        })) {
      why = describe(op) + " over " + name + " meets an exact widening";
      return true;
    }
    if (operands.size() != 1)
      return false;
    Value source = moved->getOperand(operands.front());
    if (growsUnderHoist(moved, operands.front()))
      return false;
    if (meetsEqualCast(source, op.getTo(), op)) {
      why = describe(op) + " over " + name + " meets an equal conversion";
      return true;
    }
    if (joinsProducer(source)) {
      why = describe(op) + " over " + name + " joins the kernel that makes it";
      return true;
    }
    return false;
  }

  static void hoist(CastOp op, Operation *moved, ArrayRef<unsigned> operands,
                    PatternRewriter &rewriter) {
    rewriter.setInsertionPoint(moved);
    Operation *narrow = moved;
    if (!moved->hasOneUse()) {
      narrow = rewriter.clone(*moved);
      narrow->setLoc(derivedLocation(moved->getLoc()));
    }
    rewriter.setInsertionPoint(narrow);
    SmallVector<Value> converted;
    for (unsigned i : operands) {
      auto cast = CastOp::create(rewriter, derivedLocation(op.getLoc()),
                                 narrow->getOperand(i), op.getTo(),
                                 op.getOrigin());
      cast->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      converted.push_back(cast);
    }
    rewriter.modifyOpInPlace(narrow, [&] {
      for (auto [i, value] : llvm::zip(operands, converted))
        narrow->setOperand(i, value);
      narrow->getResult(0).setType(resultIn(narrow, op.getTo()));
    });
    rewriter.replaceOp(op, narrow->getResult(0));
  }
};

} // namespace

void mlir::mp::populateHoistCastPatterns(RewritePatternSet &patterns,
                                         RewriteLog &log) {
  patterns.add<HoistNarrowing>(patterns.getContext(), log);
}
