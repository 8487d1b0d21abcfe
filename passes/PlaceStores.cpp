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
    eraseUnread();
    log.commit();
  }

private:
  /// What readers no longer read.
  void eraseUnread() {
    for (CastOp cast :
         llvm::make_early_inc_range(getOperation().getOps<CastOp>()))
      if (cast->use_empty())
        cast->erase();
  }

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
    if (source.views.empty() && !findCopy(cast, source))
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

  /// The same conversion of the source itself, if one comes before `cast`.
  static CastOp findCopy(CastOp cast, const Source &source) {
    for (Operation *user : source.value.getUsers()) {
      auto other = dyn_cast<CastOp>(user);
      if (other && other != cast && other.getTo() == cast.getTo() &&
          inSamePhase(other, cast) && other->isBeforeInBlock(cast))
        return other;
    }
    return nullptr;
  }

  /// The stored conversion of the source: one, however many readers see it
  /// through views.
  static Value copyOf(CastOp cast, const Source &source) {
    OpBuilder builder(cast->getContext());
    CastOp copy = findCopy(cast, source);
    if (copy) {
      for (Operation *user : copy->getUsers())
        if (auto stored = dyn_cast<MaterializeOp>(user))
          return stored.getOutput();
      // A library call reads it where it is.
      if (isStoredThere(copy, Source(copy)))
        return copy.getOutput();
      builder.setInsertionPointAfter(copy);
      return store(copy, builder);
    }
    builder.setInsertionPointAfter(source.producer());
    copy = CastOp::create(builder, derivedLocation(cast.getLoc()), source.value,
                          cast.getTo(), cast.getOrigin());
    copy->setDiscardableAttrs(cast->getDiscardableAttrDictionary());
    Value stored = store(copy, builder);
    shareWithLater(copy, cast, stored);
    return stored;
  }

  /// Readers of equal conversions that come later read the stored one, too.
  static void shareWithLater(CastOp copy, CastOp except, Value stored) {
    for (Operation *user : copy.getInput().getUsers()) {
      auto other = dyn_cast<CastOp>(user);
      if (other && other != copy && other != except &&
          other.getTo() == copy.getTo() && inSamePhase(other, copy))
        other.getOutput().replaceAllUsesWith(stored);
    }
  }

  /// cast(view(x)) becomes view(store(cast(x))).
  static void storeAtSource(CastOp cast, const Source &source) {
    OpBuilder builder(cast);
    Value value = copyOf(cast, source);
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
