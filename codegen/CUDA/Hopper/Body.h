//===- Body.h - the arithmetic of an epilogue on two elements ---*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_HOPPER_BODY_H
#define MP_CODEGEN_CUDA_HOPPER_BODY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp::cuda::hopper {

/// Clones the body of `generic` with a vector of two elements for each scalar.
/// `inputs` stand for its inputs, `index` gives those of a loop. Returns what
/// the body yields. Multiplications and additions may fuse if `contract`.
SmallVector<Value> cloneOnPairs(ImplicitLocOpBuilder &b,
                                linalg::GenericOp generic,
                                ArrayRef<Value> inputs,
                                llvm::function_ref<Value(unsigned)> index,
                                bool contract);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_BODY_H
