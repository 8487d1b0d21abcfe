//===- Measure.h - one read of the gradients on CUDA ------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_UPDATE_MEASURE_H
#define MP_CODEGEN_CUDA_UPDATE_MEASURE_H

#include "codegen/CUDA/Emitted.h"
#include "runtime/LossScaler.h"
#include "runtime/Update.h"

namespace mlir::mp::cuda {

/// The kernel `measure` for gradients of one format. Parameters: CudaRow[],
/// CudaChunk[], the ScalerState, CudaPart[]: one block and one part for each
/// chunk, with the bits that the CPU gives it.
EmittedKernel emitMeasure(MLIRContext &context, mpopt::update::Format gradient);

/// The kernel `total`, one block: the sum of parts, in an order of its own.
/// Parameters: CudaPart[], a CudaTotals and the number of parts (i64).
EmittedKernel emitTotal(MLIRContext &context);

/// The kernel `decide`, one thread: the multiplier with the clip factor, and
/// whether the step is skipped. Parameters: a CudaTotals, the scale (f32*), a
/// flag (f32*) that skips the step unless it is 0, a CudaDecision and the limit
/// of the norm (f64; 0: none).
EmittedKernel emitDecide(MLIRContext &context);

/// The kernel `note`, one thread: adds what was found to flags (i32*), bits of
/// NonFinite. Parameters: a CudaTotals, a flag as above, the flags.
EmittedKernel emitNote(MLIRContext &context);

/// The kernel `advance`, one thread: the loss scaler's step by `rule`.
/// Parameters: the ScalerState and the flags (i32*), which are cleared.
EmittedKernel emitAdvance(MLIRContext &context, const mpopt::ScalerRule &rule);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_MEASURE_H
