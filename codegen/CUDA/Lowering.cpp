//===- Lowering.cpp - from a gpu.module to the NVVM dialect ---------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Dump.h"
#include "codegen/CUDA/Intrinsics.h"
#include "codegen/Math/Functions.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::mp::cuda;

static void buildPipeline(OpPassManager &pm) {
  // Kernels work on pointers or on memrefs of static shape, which bare pointers
  // stand for. An index has 64 bits: the nvgpu conversion knows no other size.
  ConvertGpuOpsToNVVMOpsOptions toNVVM;
  toNVVM.useBarePtrCallConv = true;
  toNVVM.indexBitwidth = 64;

  pm.addPass(createConvertNVGPUToNVVMPass());
  OpPassManager &gpu = pm.nest<gpu::GPUModuleOp>();
  gpu.addPass(createConvertVectorToSCFPass());
  gpu.addPass(createLowerAffinePass());
  gpu.addPass(createSCFToControlFlowPass());
  gpu.addPass(memref::createExpandStridedMetadataPass());
  gpu.addPass(createLowerAffinePass());
  gpu.addPass(createConvertGpuOpsToNVVMOps(toNVVM));
  gpu.addPass(createCanonicalizerPass());
  gpu.addPass(createCSEPass());
  gpu.addPass(createReconcileUnrealizedCastsPass());
}

LogicalResult mp::cuda::lowerToNVVM(ModuleOp module, const Chip &chip) {
  useIntrinsics(module);
  expandFunctions(module);
  useIntrinsics(module); // of what functions are made of
  PassManager pm(module.getContext());
  buildPipeline(pm);
  return pm.run(module);
}

FailureOr<std::string> mp::cuda::compileToPTX(ModuleOp module, const Chip &chip,
                                              const LoweringOptions &options) {
  dump(options, "mlir", [&](raw_ostream &os) { module.print(os); });
  if (failed(lowerToNVVM(module, chip)))
    return failure();
  dump(options, "nvvm.mlir", [&](raw_ostream &os) { module.print(os); });
  llvm::LLVMContext context;
  auto translated = translateToLLVM(module, chip, context, options);
  if (failed(translated))
    return failure();
  llvm::Module &llvmModule = **translated;
  dump(options, "ll", [&](raw_ostream &os) { llvmModule.print(os, nullptr); });
  FailureOr<std::string> ptx = emitPTX(llvmModule, chip, module.getLoc());
  if (failed(ptx))
    return failure();
  dump(options, "ptx", [&](raw_ostream &os) { os << *ptx; });
  return ptx;
}
