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

/// The kernel `decide`, one block. Parameters: CudaPart[], the ScalerState, a
/// CudaDecision, the number of parts (i64) and the limit of the norm (f32; 0:
/// none). It adds the parts up, in an order of its own; makes the decision with
/// the scale that the gradients have; then takes the scaler's step by `rule`.
EmittedKernel emitDecide(MLIRContext &context, const mpopt::ScalerRule &rule);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_MEASURE_H
