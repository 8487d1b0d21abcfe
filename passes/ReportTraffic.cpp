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
/// One line about a kernel, for people.
std::string describe(const FusionEstimate::Kernel &kernel,
                     const Traffic::Kernel &moved) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (kernel.isExternal    ? "library kernel"
         : moved.onlyConverts ? "kernel that only converts"
                              : "kernel")
     << (kernel.isBackward ? " of backward" : "") << " reads "
     << moved.readBytes << " B and stores " << moved.storedBytes << " B";
  return text;
}

struct ReportTraffic : mp::impl::ReportTrafficBase<ReportTraffic> {
  using ReportTrafficBase::ReportTrafficBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    FusionEstimate fusion(func);
    Traffic traffic = countTraffic(func, fusion);
    if (kernels)
      list(fusion, traffic);
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

private:
  static void list(const FusionEstimate &fusion, const Traffic &traffic) {
    for (auto [kernel, moved] :
         llvm::zip_equal(fusion.getKernels(), traffic.kernels)) {
      auto remark = kernel.stored.front()->emitRemark(describe(kernel, moved));
      for (Operation *op : llvm::drop_begin(kernel.stored))
        remark.attachNote(op->getLoc()) << "stored by it, too: " << *op;
      for (Value read : moved.reads)
        remark.attachNote(read.getLoc()) << "read by it: " << read;
    }
  }
};
} // namespace
