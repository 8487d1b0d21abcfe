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

#include "codegen/CUDA/Chip.h"
#include "codegen/CUDA/Emitted.h"
#include "codegen/CUDA/Hopper/Plan.h"

namespace mlir::mp::cuda::hopper {

/// The name of the function.
inline constexpr char kFunctionName[] = "mp_wgmma";

/// Whether a chip runs these kernels.
bool supports(const Chip &chip);

/// Emits the kernel with the schedule that fits the shape best; null if this
/// path cannot or should not take it, and why not.
std::optional<EmittedKernel> emitFor(const MatmulKernel &kernel,
                                     const Chip &chip, std::string &whyNot);

/// Emits the kernel; null if this path cannot take it, and why not.
std::optional<EmittedKernel>
emit(const MatmulKernel &kernel, const Schedule &schedule, std::string &whyNot);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_EMIT_H
