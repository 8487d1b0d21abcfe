//===- LowerRegionsToLinalg.cpp - mp-lower-regions-to-linalg --------------===//

#include "codegen/Lower/LowerRegion.h"
#include "codegen/Lower/Passes.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/Remarks.h"

namespace mlir::mp {
#define GEN_PASS_DEF_LOWERREGIONSTOLINALG
#include "codegen/Lower/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct LowerRegionsToLinalg
    : mlir::mp::impl::LowerRegionsToLinalgBase<LowerRegionsToLinalg> {
  void runOnOperation() override {
    getOperation().walk([&](RegionOp region) {
      if (!region.getKernel())
        lower(region);
    });
  }

private:
  void lower(RegionOp region) {
    auto options = [&] {
      return remark::RemarkOpts::name("lower-region").category(getArgument());
    };
    std::string reason;
    OwningOpRef<ModuleOp> kernel = lowerRegion(region, reason);
    if (!kernel) {
      remark::missed(region.getLoc(), options())
          << (region.getName() + " has no kernel: " + reason).str();
      return;
    }
    region.setKernel(kernelText(*kernel));
    remark::passed(region.getLoc(), options())
        << (region.getName() + " has a kernel").str();
  }
};
} // namespace
