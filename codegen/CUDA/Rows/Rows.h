//===- Rows.h - CUDA kernels over the rows of a matrix ----------*- C++ -*-===//
//
// Norms, softmax, cross entropy, pointwise chains and sums over rows, forward
// and backward: any row kernel of the backend contract.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_ROWS_ROWS_H
#define MP_CODEGEN_CUDA_ROWS_ROWS_H

#include "codegen/CUDA/Emitted.h"
#include "codegen/CUDA/Rows/RowSchedule.h"

namespace mlir::mp::cuda {

/// Writes the kernel. All buffers must be aligned to 16 bytes.
FailureOr<EmittedKernel> emitRows(const RowKernel &kernel,
                                  const RowSchedule &schedule);

/// The same with the schedule that chooseRowSchedule gives.
FailureOr<EmittedKernel> emitRows(const RowKernel &kernel);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_ROWS_H
