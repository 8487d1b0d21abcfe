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

static bool isReshape(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && precision.getOpKind() == OpKind::Reshape;
}

/// True if an operation that the framework calls a library for reads `value`,
/// perhaps through views: then it is in memory with or without us.
static bool reachesLibrary(Value value) {
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    for (Operation *user : pending.pop_back_val().getUsers()) {
      auto precision = dyn_cast<PrecisionOpInterface>(user);
      if (!precision)
        continue;
      if (isExternalKind(precision.getOpKind()))
        return true;
      if (precision.isView())
        pending.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

namespace {
struct PlaceStores : mp::impl::PlaceStoresBase<PlaceStores> {
  using PlaceStoresBase::PlaceStoresBase;

  void runOnOperation() override {
    RewriteLog log(getOperation(), getArgument());
    for (CastOp cast :
         llvm::make_early_inc_range(getOperation().getOps<CastOp>()))
      if (isCandidate(cast) && !place(cast, log))
        break;
    log.commit();
  }

private:
  bool isCandidate(CastOp cast) const {
    if (!isNarrowing(cast) || !isHalf(cast.getTo()))
      return false;
    std::optional<int64_t> elements = staticNumElements(cast.getType());
    if (!elements || *elements <= minElements)
      return false;
    Operation *producer = cast.getInput().getDefiningOp();
    if (!producer || cast.getInput().hasOneUse())
      return false;
    return llvm::all_of(cast->getUsers(), isReshape) &&
           llvm::none_of(
               cast->getUsers(),
               [](Operation *user) { return isa<MaterializeOp>(user); }) &&
           reachesLibrary(cast.getOutput());
  }

  static bool place(CastOp cast, RewriteLog &log) {
    Operation *producer = cast.getInput().getDefiningOp();
    StringRef name = frameworkCallee(producer);
    if (!log.apply(
            Rule::PlaceStore, cast,
            describe(cast) + " is stored by the kernel of " +
                (name.empty() ? producer->getName().getStringRef() : name)))
      return false;
    OpBuilder builder(cast->getContext());
    builder.setInsertionPointAfter(cast);
    auto store = MaterializeOp::create(builder, derivedLocation(cast.getLoc()),
                                       cast.getType(), cast.getOutput());
    store->setDiscardableAttrs(cast->getDiscardableAttrDictionary());
    cast.getOutput().replaceAllUsesExcept(store.getOutput(), store);
    return true;
  }
};
} // namespace
