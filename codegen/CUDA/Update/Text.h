//===- Text.h - the kernels of the update by name ---------------*- C++ -*-===//
//
// A kernel of the update has no source. What it is compiled for is said in one
// line, which also names it in caches:
//
//   update adam weight=f32 gradient=bf16 first=f32 second=f32 copy=bf16 clear
//   measure bf16 | total | decide | note | poke | factors | factors rate
//   advance torch init_scale=65536.0 growth_factor=2.0 ... at_floor=hold
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_UPDATE_TEXT_H
#define MP_CODEGEN_CUDA_UPDATE_TEXT_H

#include "codegen/CUDA/Emitted.h"

namespace mlir::mp::cuda {

/// The kernel that `text` says. Fails with a diagnostic that names what is
/// wrong.
FailureOr<EmittedKernel> emitFromText(MLIRContext &context, StringRef text);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_TEXT_H
