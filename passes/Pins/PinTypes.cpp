//===- PinTypes.cpp - mp-pin ----------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Pins/PinContext.h"
#include "passes/Pins/Ranges.h"

namespace mlir::mp {
#define GEN_PASS_DEF_PINTYPES
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// f16 if the graph has values of it, else bf16.
static bool holdsF16(func::FuncOp func) {
  auto isF16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  if (llvm::any_of(func.getArgumentTypes(), isF16))
    return true;
  return llvm::any_of(func.getBody().getOps(), [&](Operation &op) {
    return llvm::any_of(op.getResultTypes(), isF16);
  });
}

namespace {
struct PinTypes : mp::impl::PinTypesBase<PinTypes> {
  using PinTypesBase::PinTypesBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (rangesFile.empty())
      return success();
    llvm::Expected<Ranges> loaded = loadRanges(rangesFile);
    if (!loaded)
      return emitError(UnknownLoc::get(context))
             << getArgument() << ": " << llvm::toString(loaded.takeError());
    ranges = std::make_shared<const Ranges>(std::move(*loaded));
    return success();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    markAllAnalysesPreserved();
    if (func.isExternal())
      return;
    bool isF16 = half == Half::F16 || (half == Half::Auto && holdsF16(func));
    std::optional<MeasuredValues> measured;
    if (ranges)
      measured.emplace(func, *ranges);
    PinContext context(func, halfFormat(isF16),
                       measured ? &*measured : nullptr);
#define MP_PIN_DETECTOR(FUNCTION) FUNCTION(context);
#include "passes/Pins/PinDetectors.def"
  }

private:
  std::shared_ptr<const Ranges> ranges;
};
} // namespace
