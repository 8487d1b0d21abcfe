//===- Lowering.h - from a gpu.module to PTX --------------------*- C++ -*-===//
//
// What all emitters share below their gpu.module. Three steps, each of which a
// test can stop after:
//
//   lowerToNVVM      gpu, nvgpu, vector, scf, math ...  ->  NVVM dialect
//   translateToLLVM  NVVM dialect  ->  LLVM IR, libdevice linked, optimised
//   emitPTX          LLVM IR  ->  PTX text
//
// compileToPTX does all of them and writes the stages to a folder if asked.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_LOWERING_H
#define MP_CODEGEN_CUDA_LOWERING_H

#include "codegen/CUDA/Chip.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace mlir::mp::cuda {

struct LoweringOptions {
  /// Where libdevice.10.bc may lie: files, or folders that hold it. The folders
  /// of CUDA_HOME and CUDA_PATH come after these. Needed only by kernels with
  /// mathematical functions that are not our own.
  llvm::SmallVector<std::string> libdevice;
  /// The folder that gets `<name>.mlir`, `.nvvm.mlir`, `.ll` and `.ptx`; none
  /// if empty.
  std::string dumpFolder;
  std::string dumpName = "kernel";
};

/// The dialects and translations that kernels and their lowering need.
void registerCudaDialects(DialectRegistry &registry);

/// Lowers the gpu.module of `module` in place.
LogicalResult lowerToNVVM(ModuleOp module, const Chip &chip);

/// The LLVM IR of a lowered module, after optimisation and before NVPTX.
/// `module` stays as it is.
FailureOr<std::unique_ptr<llvm::Module>>
translateToLLVM(ModuleOp module, const Chip &chip, llvm::LLVMContext &context,
                const LoweringOptions &options = {});

/// PTX text.
FailureOr<std::string> emitPTX(llvm::Module &module, const Chip &chip,
                               Location location);

/// All steps; `module` is lowered in place.
FailureOr<std::string> compileToPTX(ModuleOp module, const Chip &chip,
                                    const LoweringOptions &options = {});

/// The path of libdevice; empty if there is none.
std::string findLibdevice(llvm::ArrayRef<std::string> places);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_LOWERING_H
