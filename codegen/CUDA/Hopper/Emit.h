//===- Emit.h - matmul kernels for sm_90a -----------------------*- C++ -*-===//
//
// The wgmma kernel: one warpgroup loads tiles by TMA into a ring of stages, one
// or two others multiply them (wgmma, operands in shared memory) and run the
// epilogue on their accumulators. f16 and bf16, all layouts whose rows are a
// multiple of 16 bytes long.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_HOPPER_EMIT_H
#define MP_CODEGEN_CUDA_HOPPER_EMIT_H

#include "codegen/CUDA/Hopper/Plan.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp::cuda::hopper {

/// A module with one gpu.module with one llvm.func, the kernel, and how it is
/// launched.
struct Emitted {
  OwningOpRef<ModuleOp> module;
  ::mp::runtime::CudaKernel
      launch; ///< `maps` points into the field of that name.
  std::vector<::mp::runtime::TensorMap> maps;
};

/// The name of the function.
inline constexpr char kFunctionName[] = "mp_wgmma";

/// The dialects of what this emits.
void registerDialects(DialectRegistry &registry);

/// Emits the kernel; null if this path cannot take it, and why not.
std::optional<Emitted> emit(const MatmulKernel &kernel,
                            const Schedule &schedule, std::string &whyNot);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_EMIT_H
