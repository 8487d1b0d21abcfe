//===- HoistCasts.cpp - narrowings move towards definitions ---------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastIndex.h"
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

/// True if `moved` has more elements in its operands than in its result, or may
/// have.
static bool growsUnderHoist(Operation *moved, ArrayRef<unsigned> operands) {
  // With a dynamic size only a view keeps the number of elements for sure, and
  // not even each of those; refuse.
  auto after = staticNumElements(moved->getResult(0).getType());
  int64_t elements = 0;
  for (unsigned operand : operands) {
    auto before = staticNumElements(moved->getOperand(operand).getType());
    if (!before || !after)
      return true;
    elements += *before;
    if (elements > *after)
      return true;
  }
  return false;
}

/// True if the conversion joins the kernel that computes `value`.
static bool joinsProducer(Value value) {
  auto producer = value.getDefiningOp<PrecisionOpInterface>();
  return producer && isFusibleKind(producer.getOpKind());
}

namespace {

/// cast(move(x) : A to B) -> move(cast(x : A to B)), where move copies or
/// renames elements or changes their signs: rounding each first gives the same
/// bits. Also over min, max and relu of values that B holds, which are not
/// rounded at all.
struct HoistNarrowing : LoggedPattern<CastOp> {
  HoistNarrowing(MLIRContext *context, RewriteLog &log, const CastIndex &index)
      : LoggedPattern(context, log), index(index) {}

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
    if (keepsTypes(moved))
      return rewriter.notifyMatchFailure(op, "a pin keeps the types behind it");
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
  bool pays(CastOp op, PrecisionOpInterface moved, ArrayRef<unsigned> operands,
            std::string &why) const {
    std::string name = frameworkCallee(moved).str();
    if (llvm::any_of(operands, [&](unsigned i) {
          return leadsToWidening(moved->getOperand(i), op.getTo(), op);
        })) {
      why = describe(op) + " over " + name + " meets an exact widening";
      return true;
    }
    if (growsUnderHoist(moved, operands))
      return false;
    if (llvm::any_of(operands, [&](unsigned i) {
          return index.find(moved->getOperand(i), op.getTo(), op);
        })) {
      why = describe(op) + " over " + name + " meets an equal conversion";
      return true;
    }
    if (operands.size() == 1 &&
        joinsProducer(moved->getOperand(operands.front()))) {
      why = describe(op) + " over " + name + " joins the kernel that makes it";
      return true;
    }
    return false;
  }

  void hoist(CastOp op, Operation *moved, ArrayRef<unsigned> operands,
             PatternRewriter &rewriter) const {
    rewriter.setInsertionPoint(moved);
    Operation *narrow = moved;
    if (!moved->hasOneUse()) {
      narrow = rewriter.clone(*moved);
      narrow->setLoc(derivedLocation(moved->getLoc()));
    }
    rewriter.setInsertionPoint(narrow);
    SmallVector<Value> converted;
    for (unsigned i : operands)
      converted.push_back(convert(op, narrow, i, rewriter));
    rewriter.modifyOpInPlace(narrow, [&] {
      for (auto [i, value] : llvm::zip(operands, converted))
        narrow->setOperand(i, value);
      narrow->getResult(0).setType(resultIn(narrow, op.getTo()));
    });
    rewriter.replaceOp(op, narrow->getResult(0));
  }

  /// Operand `i` of `narrow`, converted as `op` does, by an equal conversion if
  /// there is one: sharing them later would take a round for each of a chain.
  Value convert(CastOp op, Operation *narrow, unsigned i,
                PatternRewriter &rewriter) const {
    CastOp equal = index.find(narrow->getOperand(i), op.getTo(), op);
    if (equal && equal->isBeforeInBlock(narrow) &&
        !wouldAlias(op.getOutput(), equal.getOutput())) {
      // It has lost a competitor: visit it again. What the user wrote stays
      // his.
      rewriter.modifyOpInPlace(equal, [&] {
        if (op.getOrigin() == CastOrigin::user)
          equal.setOriginAttr(op.getOriginAttr());
      });
      return equal;
    }
    auto cast =
        CastOp::create(rewriter, derivedLocation(op.getLoc()),
                       narrow->getOperand(i), op.getTo(), op.getOrigin());
    rewriter.modifyOpInPlace(cast, [&] {
      cast->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    });
    return cast;
  }

  const CastIndex &index;
};

} // namespace

void mlir::mp::populateHoistCastPatterns(RewritePatternSet &patterns,
                                         RewriteLog &log,
                                         const CastIndex &index) {
  patterns.add<HoistNarrowing>(patterns.getContext(), log, index);
}
