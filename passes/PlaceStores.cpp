//===- PlaceStores.cpp - mp-place-stores ----------------------------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Passes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_PLACESTORES
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// True if a reader uses `value` in memory through a library call, perhaps
/// through views: then it is stored with or without us. `isPermuted` leaves
/// only matrix products, which take any strides; others would copy first.
static bool reachesLibrary(Value value, bool isPermuted) {
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    for (Operation *user : pending.pop_back_val().getUsers()) {
      auto precision = dyn_cast<PrecisionOpInterface>(user);
      if (!precision)
        continue;
      OpKind kind = precision.getOpKind();
      if (isPermuted ? kind == OpKind::Matmul : isExternalKind(kind))
        return true;
      if (precision.isView())
        pending.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

/// True if every element of the operand is one of the result.
static bool keepsElements(PrecisionOpInterface op) {
  if (!op.isView() || op->getNumResults() != 1 || !isMemoryEffectFree(op) ||
      op.getValueOperands().size() != 1 || namesDtype(op))
    return false;
  Value source = op->getOperand(op.getValueOperands().front());
  auto before = staticNumElements(source.getType());
  return before && before == staticNumElements(op->getResult(0).getType());
}

namespace {
/// The computed value that a narrowing rounds.
struct Source {
  Value value;
  /// From the narrowing up to the value.
  SmallVector<PrecisionOpInterface> views;
  bool isReadElsewhere = false;

  explicit Source(CastOp cast) : value(cast.getInput()) {
    isReadElsewhere = !value.hasOneUse();
    auto view = value.getDefiningOp<PrecisionOpInterface>();
    for (; view && keepsElements(view);
         view = value.getDefiningOp<PrecisionOpInterface>()) {
      views.push_back(view);
      value = view->getOperand(view.getValueOperands().front());
      isReadElsewhere |= !value.hasOneUse();
    }
  }

  PrecisionOpInterface producer() const {
    return value.getDefiningOp<PrecisionOpInterface>();
  }

  bool isPermuted() const {
    return llvm::any_of(
        views, [](Operation *view) { return opKindOf(view) == OpKind::View; });
  }
};

struct PlaceStores : mp::impl::PlaceStoresBase<PlaceStores> {
  using PlaceStoresBase::PlaceStoresBase;

  void runOnOperation() override {
    RewriteLog log(getOperation(), getArgument());
    for (CastOp cast :
         llvm::make_early_inc_range(getOperation().getOps<CastOp>())) {
      Source source(cast);
      if (isCandidate(cast, source) && !place(cast, source, log))
        break;
    }
    log.commit();
  }

private:
  bool isCandidate(CastOp cast, const Source &source) const {
    if (!isNarrowing(cast) || !isHalf(cast.getTo()))
      return false;
    std::optional<int64_t> elements = staticNumElements(cast.getType());
    if (!elements || *elements <= minElements)
      return false;
    // Without another reader the fuser computes the value inside the
    // conversion.
    if (!source.producer() || !source.isReadElsewhere)
      return false;
    if (!isFusibleKind(source.producer().getOpKind()))
      return false;
    return !isStoredThere(cast, source) &&
           reachesLibrary(cast.getOutput(), source.isPermuted());
  }

  /// True if a reader has the conversion stored in the shape of its source.
  static bool isStoredThere(CastOp cast, const Source &source) {
    if (llvm::any_of(cast->getUsers(), llvm::IsaPred<MaterializeOp>))
      return true;
    return source.views.empty() &&
           !llvm::all_of(cast->getUsers(), [](Operation *user) {
             return opKindOf(user) == OpKind::Reshape;
           });
  }

  static bool place(CastOp cast, const Source &source, RewriteLog &log) {
    PrecisionOpInterface producer = source.producer();
    StringRef name = frameworkCallee(producer);
    if (!log.apply(
            Rule::PlaceStore, cast,
            describe(cast) + " is stored by the kernel of " +
                (name.empty() ? producer->getName().getStringRef() : name)))
      return false;
    if (source.views.empty())
      storeInPlace(cast);
    else
      storeAtSource(cast, source);
    return true;
  }

  static MaterializeOp store(CastOp cast, OpBuilder &builder) {
    auto store = MaterializeOp::create(builder, derivedLocation(cast.getLoc()),
                                       cast.getType(), cast.getOutput());
    store->setDiscardableAttrs(cast->getDiscardableAttrDictionary());
    return store;
  }

  static void storeInPlace(CastOp cast) {
    OpBuilder builder(cast->getContext());
    builder.setInsertionPointAfter(cast);
    MaterializeOp stored = store(cast, builder);
    cast.getOutput().replaceAllUsesExcept(stored.getOutput(), stored);
  }

  /// cast(view(x)) becomes view(store(cast(x))).
  static void storeAtSource(CastOp cast, const Source &source) {
    OpBuilder builder(cast->getContext());
    builder.setInsertionPointAfter(source.producer());
    auto moved = CastOp::create(builder, derivedLocation(cast.getLoc()),
                                source.value, cast.getTo(), cast.getOrigin());
    moved->setDiscardableAttrs(cast->getDiscardableAttrDictionary());
    Value value = store(moved, builder);
    builder.setInsertionPoint(cast);
    for (PrecisionOpInterface view : llvm::reverse(source.views)) {
      Operation *copy = builder.clone(*view);
      copy->setLoc(derivedLocation(view->getLoc()));
      copy->setOperand(view.getValueOperands().front(), value);
      value = copy->getResult(0);
      value.setType(resultIn(copy, cast.getTo()));
    }
    cast.getOutput().replaceAllUsesWith(value);
    cast.erase();
    for (PrecisionOpInterface view : source.views)
      if (view->use_empty())
        view->erase();
  }
};
} // namespace
