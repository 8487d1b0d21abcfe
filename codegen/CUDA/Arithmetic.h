//===- Arithmetic.h - the body of a linalg.generic on vectors ---*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_ARITHMETIC_H
#define MP_CODEGEN_CUDA_ARITHMETIC_H

#include "codegen/CUDA/Builder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::mp::cuda {

/// The body's values for `width` neighbours at once.
struct VectorBody {
  linalg::GenericOp op;
  int64_t width;
  /// Whether multiplications and additions may be fused.
  bool contract = false;
  /// For linalg.index: the loops' values, vectors of index.
  SmallVector<Value> indices;
};

/// Clones the arithmetic of a body on vectors and returns what it yields.
/// `arguments` stand for the first arguments of the body; an argument without
/// one must be unused. Every rounding stays where it is.
SmallVector<Value> cloneOnVectors(KernelBuilder &b, const VectorBody &body,
                                  ValueRange arguments);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ARITHMETIC_H
