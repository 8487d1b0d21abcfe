//===- Normalize.cpp - mp-normalize ---------------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "passes/Passes.h"
#include "passes/Promotion.h"

namespace mlir::mp {
#define GEN_PASS_DEF_NORMALIZE
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// True if the operator only converts: no other device, layout or memory
/// format, and no copy that somebody asked for.
static bool onlyConverts(AtenOp op) {
  DictionaryAttr args = op.getArgsAttr();
  if (!args)
    return true;
  return llvm::all_of(args, [](NamedAttribute arg) {
    if (arg.getName() == "dtype")
      return true;
    if (auto flag = dyn_cast<BoolAttr>(arg.getValue()))
      return !flag.getValue();
    return isa<UnitAttr>(arg.getValue());
  });
}

/// Who asked: the importer may know better than "somebody did".
static CastOrigin originOf(AtenOp op) {
  auto origin = op->getAttrOfType<CastOriginAttr>("mp.origin");
  return origin ? origin.getValue() : CastOrigin::user;
}

namespace {
struct Normalize : mp::impl::NormalizeBase<Normalize> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    numberNodes();
    for (AtenOp op :
         llvm::make_early_inc_range(getOperation().getOps<AtenOp>()))
      normalize(op);
    for (AtenOp op : getOperation().getOps<AtenOp>())
      makePromotionExplicit(op);
  }

private:
  void numberNodes() {
    for (auto [i, op] :
         llvm::enumerate(getOperation().getBody().front().without_terminator()))
      if (stemOf(op.getLoc()) < 0)
        op.setLoc(nodeLocation(i, op.getLoc()));
  }

  void normalize(AtenOp op) {
    if (!isConversionTarget(op.getCallee()) || !onlyConverts(op) ||
        op.getEffects() || op->getNumOperands() == 0 ||
        op->getNumResults() != 1)
      return;
    auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!from || !to || from.getShape() != to.getShape())
      return;
    OpBuilder builder(op);
    auto cast = CastOp::create(builder, op.getLoc(), op->getOperand(0),
                               to.getElementType(), originOf(op));
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (attr.getName() != "mp.origin")
        cast->setDiscardableAttr(attr.getName(), attr.getValue());
    op->replaceAllUsesWith(cast);
    op->erase();
  }
};
} // namespace
