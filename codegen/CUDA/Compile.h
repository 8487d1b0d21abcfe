//===- Compile.h - from a kernel of the contract to PTX ---------*- C++ -*-===//
//
// The entries of the CUDA backend: they pick the emitter and its schedule.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_COMPILE_H
#define MP_CODEGEN_CUDA_COMPILE_H

#include "codegen/CUDA/Emitted.h"
#include "codegen/CUDA/Lowering.h"
#include "codegen/Kernel/Kernel.h"
#include <vector>

namespace mlir::mp::cuda {

/// PTX with one kernel, and how it is launched: `name` and `maps` stand in for
/// the pointers in `launch`.
struct CompiledKernel {
  std::string ptx, name;
  ::mp::runtime::CudaKernel launch;
  std::vector<::mp::runtime::TensorMap> maps;
  /// Why it is not the kernel that the chip runs fastest; "" if it is.
  std::string note;
};

/// Emits a kernel with a schedule, such as "128x128x32 w64x64 s4" or "wgmma
/// 128x256x64"; an empty one stands for what is best. Fails with a diagnostic
/// where no emitter takes it.
FailureOr<EmittedKernel> emitKernel(const Kernel &kernel, const Chip &chip,
                                    llvm::StringRef schedule = "");

/// Compiles `@kernel` of `module`, in the form of the backend contract, for a
/// chip: kernels that are launched one after the other. Fails with a diagnostic
/// where no emitter takes it.
FailureOr<std::vector<CompiledKernel>>
compileKernel(ModuleOp module, const Chip &chip,
              const LoweringOptions &options = {});

/// The same for a kernel of the update, by its line (Update/Text.h).
FailureOr<CompiledKernel> compileUpdate(MLIRContext &context, StringRef text,
                                        const Chip &chip,
                                        const LoweringOptions &options = {});

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_COMPILE_H
