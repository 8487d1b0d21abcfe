//===- Factors.h - factors and tables of the update on CUDA -----*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_UPDATE_FACTORS_H
#define MP_CODEGEN_CUDA_UPDATE_FACTORS_H

#include "codegen/CUDA/Emitted.h"

namespace mlir::mp::cuda {

/// The kernel `factors`, a thread for each tensor of a group: counts its update
/// unless the step is skipped, and writes its CudaFactors with the bits of
/// `cudaFactorsOf`. Parameters: CudaClock[], CudaFactors[], the CudaDecision,
/// the learning rate (f32*; used if `readsRate`); then the number of tensors
/// (i64), learning rate, beta1, beta2, epsilon, decay, momentum and dampening
/// (f64), bits of CudaOption (i64) and the seed (i64).
EmittedKernel emitFactors(MLIRContext &context, bool readsRate);

/// The kernel `poke`, one thread: writes up to kCudaPokeWords words that come
/// as parameters, so that nobody must keep them. Parameters: where to, how many
/// (i64), the words (i64).
EmittedKernel emitPoke(MLIRContext &context);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_FACTORS_H
