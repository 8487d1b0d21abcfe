//===- Matmul.h - the CUDA kernel of a matmul -------------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_MATMUL_MATMUL_H
#define MP_CODEGEN_CUDA_MATMUL_MATMUL_H

#include "codegen/CUDA/Emitted.h"
#include "codegen/CUDA/Schedule.h"

namespace mlir::mp::cuda {

/// Emits a kernel for mma.sync (sm_80 and later). Fails, with a diagnostic, if
/// the schedule does not fit the kernel.
FailureOr<EmittedKernel> emitMatmul(const MatmulKernel &kernel,
                                    const MatmulSchedule &schedule);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_MATMUL_H
