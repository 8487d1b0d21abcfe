//===- VerifyBackendContract.cpp - mp-verify-backend-contract -------------===//

#include "codegen/Kernel/Kernel.h"
#include "codegen/Lower/LowerRegion.h"
#include "codegen/Lower/Passes.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/Verifier.h"

namespace mlir::mp {
#define GEN_PASS_DEF_VERIFYBACKENDCONTRACT
#include "codegen/Lower/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// True for the module of a kernel.
static bool isKernel(ModuleOp module) {
  return module.lookupSymbol(kKernelName) != nullptr;
}

/// What is wrong with a kernel is said at its region.
static LogicalResult verifyKernelOf(RegionOp region) {
  FailureOr<OwningOpRef<ModuleOp>> kernel = parseKernelText(region);
  if (failed(kernel))
    return region.emitOpError("has a kernel that cannot be parsed");
  std::string message;
  LogicalResult result = success();
  {
    ScopedDiagnosticHandler keep(region.getContext(),
                                 [&](Diagnostic &diagnostic) {
                                   if (message.empty())
                                     message = diagnostic.str();
                                   return success();
                                 });
    result = failure(failed(mlir::verify(**kernel)) ||
                     failed(parseKernel(**kernel)));
  }
  if (failed(result))
    return region.emitOpError("has a kernel that breaks ") << message;
  auto func = (*kernel)->lookupSymbol<func::FuncOp>(kKernelName);
  if (TypeRange(func.getArgumentTypes()) != region.getOperandTypes() ||
      TypeRange(func.getResultTypes()) != region.getResultTypes())
    return region.emitOpError(
        "has a kernel with other operands or results than its own");
  return success();
}

namespace {
struct VerifyBackendContract
    : mlir::mp::impl::VerifyBackendContractBase<VerifyBackendContract> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool isValid = !isKernel(module) || succeeded(parseKernel(module));
    module.walk([&](RegionOp region) {
      if (region.getKernel())
        isValid &= succeeded(verifyKernelOf(region));
    });
    if (!isValid)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
