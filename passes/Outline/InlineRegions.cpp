//===- InlineRegions.cpp - mp-inline-regions ------------------------------===//

#include "dialect/IR/Regions.h"
#include "passes/Passes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_INLINEREGIONS
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct InlineRegions : mp::impl::InlineRegionsBase<InlineRegions> {
  using InlineRegionsBase::InlineRegionsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    for (RegionOp op :
         llvm::make_early_inc_range(getOperation().getOps<RegionOp>()))
      if (!withoutKernel || !op.getKernel())
        inlineBody(op);
  }
};
} // namespace
