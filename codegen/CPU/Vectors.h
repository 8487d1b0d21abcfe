//===- Vectors.h - memory and masks of kernels for the CPU ------*- C++ -*-===//
//
// Small builders that all kernels for the CPU share, beside those of
// codegen/Kernel/Bodies.h.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_VECTORS_H
#define MP_CODEGEN_CPU_VECTORS_H

#include "codegen/Kernel/Bodies.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

namespace mlir::mp::cpu {

/// Elements of a vector. LLVM cuts it to what the machine has, so that sums
/// have the same order everywhere.
inline constexpr int64_t kLanes = 16;

LLVM::LLVMPointerType pointerType(Builder &b);

/// The address of a kernel's buffer.
Value bufferOf(ImplicitLocOpBuilder &b, Value buffers, unsigned number);

/// The address of the element at `index` (i64).
Value addressOf(ImplicitLocOpBuilder &b, Value base, Value index, Type element);

/// Reads `width` elements; those that `mask` leaves out are zero. A null mask
/// leaves out none.
Value loadElements(ImplicitLocOpBuilder &b, Value address, Type element,
                   int64_t width, Value mask = {});
void storeElements(ImplicitLocOpBuilder &b, Value value, Value address,
                   Value mask = {});

/// The first `count` of kLanes.
Value constantMask(ImplicitLocOpBuilder &b, int64_t count);

/// Joins the elements of a vector: the first half with the second, until there
/// is one left.
Value joinElements(ImplicitLocOpBuilder &b, Operation *combiner, Value vector);

/// Fails with an error unless `cloneBody` can clone each op of the body.
LogicalResult checkBody(linalg::GenericOp op);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_VECTORS_H
