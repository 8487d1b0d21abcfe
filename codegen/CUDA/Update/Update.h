//===- Update.h - the fused scaled update on CUDA ---------------*- C++ -*-===//
//
// The sweep of runtime/Update.h over many tensors in one launch, with the same
// bits: what the CPU does with a fused multiply-add is one here, nothing else
// is. A NaN keeps being one, but not its payload.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_UPDATE_UPDATE_H
#define MP_CODEGEN_CUDA_UPDATE_UPDATE_H

#include "codegen/CUDA/Emitted.h"
#include "runtime/Update.h"
#include <optional>

namespace mlir::mp::cuda {

/// What a kernel is compiled for: everything that is no number. Tensors that
/// agree in it share a launch.
struct UpdateKernel {
  using Format = mpopt::update::Format;

  mpopt::update::Algorithm algorithm = mpopt::update::Algorithm::Adam;
  Format weight = Format::F32;
  /// The weight is bf16 and its lower 16 bits stand beside it.
  bool isSplit = false;
  Format gradient = Format::F32;
  std::optional<Format> first, second, largest, copy;
  bool isNesterov = false;
  mpopt::update::Rounding rounding = mpopt::update::Rounding::Nearest;
  bool clearsGradients = false;
};

/// Why there can be no such kernel; empty if there can.
std::string whatIsWrong(const UpdateKernel &kernel);

/// The kernel `update`. Parameters: CudaRow[], CudaFactors[], CudaChunk[] of
/// runtime/CudaUpdate.h and one CudaDecision; one block for each chunk.
FailureOr<EmittedKernel> emitUpdate(MLIRContext &context,
                                    const UpdateKernel &kernel);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_UPDATE_H
