//===- ExpandForeach.cpp - mp-expand-foreach ------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/ListOperators.h"
#include "passes/Passes.h"
#include "passes/RewriteLog.h"
#include "passes/Update/LossScaleTypes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_EXPANDFOREACH
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct ExpandForeach : mp::impl::ExpandForeachBase<ExpandForeach> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    // The operators tell which values are loss scales: before they are gone.
    markLossScales(getOperation());
    RewriteLog log(getOperation(), getArgument());
    for (AtenOp op :
         llvm::make_early_inc_range(getOperation().getOps<AtenOp>()))
      if (isListOperator(op))
        expand(op, log);
    log.commit();
  }

private:
  static void expand(AtenOp op, RewriteLog &log) {
    Rule rule = isUnscaling(op) ? Rule::ExpandUnscale : Rule::ExpandForeach;
    if (StringRef why = whyNotExpandable(op); !why.empty())
      return log.miss(rule, op, why);
    unsigned count = op->getNumResults() - isUnscaling(op);
    if (!log.apply(rule, op, Twine(count) + " tensors, one by one"))
      return;
    replaceByLoop(op, derivedLocation(op.getLoc()));
  }
};
} // namespace
