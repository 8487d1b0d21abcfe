//===- ReportTraffic.cpp - mp-report-traffic ------------------------------===//

#include "passes/Passes.h"
#include "passes/Placement/Traffic.h"

namespace mlir::mp {
#define GEN_PASS_DEF_REPORTTRAFFIC
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct ReportTraffic : mp::impl::ReportTrafficBase<ReportTraffic> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    auto target = func->getAttrOfType<StringAttr>(MPDialect::kTargetAttrName);
    bool isCUDA = target && target.getValue() == "cuda";
    Traffic traffic = countTraffic(func, FusionEstimate(func, isCUDA));
    Builder builder(func.getContext());
    auto entry = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    func->setAttr(MPDialect::kTrafficAttrName,
                  builder.getDictionaryAttr(
                      {entry("fused_bytes", traffic.fusedBytes),
                       entry("fused_kernels", traffic.fusedKernels),
                       entry("external_bytes", traffic.externalBytes),
                       entry("external_kernels", traffic.externalKernels),
                       entry("saved_bytes", traffic.savedBytes),
                       entry("cast_bytes", traffic.castBytes),
                       entry("cast_kernels", traffic.castKernels)}));
    markAllAnalysesPreserved();
  }
};
} // namespace
