//===- Translate.cpp - from the NVVM dialect to LLVM IR and PTX -----------===//

#include "codegen/CUDA/Libdevice.h"
#include "codegen/CUDA/Lowering.h"
#include "codegen/Optimize/Optimize.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static void initializeTarget() {
  static const bool done = [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)done;
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const Chip &chip,
                                                          Location location) {
  initializeTarget();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    emitError(location) << error;
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip.name, ("+ptx" + llvm::Twine(chip.ptx)).str(),
      llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// The gpu.module of a copy in which NVVM ops without an intrinsic have become
/// inline PTX.
static gpu::GPUModuleOp lowerToInlinePTX(ModuleOp copy) {
  PassManager pm(copy.getContext());
  pm.addPass(createConvertNVVMToLLVMPass());
  if (failed(pm.run(copy)))
    return {};
  auto modules = copy.getOps<gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(modules)) {
    copy.emitError("expected one gpu.module");
    return {};
  }
  return *modules.begin();
}

FailureOr<std::unique_ptr<llvm::Module>>
mp::cuda::translateToLLVM(ModuleOp module, const Chip &chip,
                          llvm::LLVMContext &context,
                          const LoweringOptions &options) {
  auto machine = createMachine(chip, module.getLoc());
  if (!machine)
    return failure();
  OwningOpRef<ModuleOp> copy(module.clone());
  gpu::GPUModuleOp gpuModule = lowerToInlinePTX(*copy);
  if (!gpuModule)
    return failure();
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(gpuModule, context, options.dumpName);
  if (!result)
    return failure();
  result->setTargetTriple(machine->getTargetTriple());
  result->setDataLayout(machine->createDataLayout());
  if (failed(linkLibdevice(*result, options, module.getLoc())))
    return failure();
  // Emitters unroll what is worth it; more copies of a main loop only take
  // space from the instruction cache.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  optimize(*result, llvm::OptimizationLevel::O3, machine.get(), tuning);
  return result;
}

FailureOr<std::string> mp::cuda::emitPTX(llvm::Module &module, const Chip &chip,
                                         Location location) {
  auto machine = createMachine(chip, location);
  if (!machine)
    return failure();
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return emitError(location) << "LLVM cannot write PTX for " << chip.name;
  passes.run(module);
  return std::string(text.begin(), text.end());
}
