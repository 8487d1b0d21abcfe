//===- Intrinsics.h - what NVPTX has instructions for -----------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_INTRINSICS_H
#define MP_CODEGEN_CUDA_INTRINSICS_H

#include "mlir/IR/Operation.h"

namespace mlir::mp::cuda {

/// Replaces ops of the math dialect that are one instruction (roots, rounding,
/// signs, fma) by intrinsics: the conversion of the gpu dialect would call
/// libdevice. All are rounded correctly but rsqrt, which is the instruction
/// that PyTorch's kernels use as well.
void useIntrinsics(Operation *root);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_INTRINSICS_H
