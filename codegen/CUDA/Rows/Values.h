//===- Values.h - scalar arithmetic on vectors, and memory ------*- C++ -*-===//
//
// Small builders that all row kernels for CUDA share, beside those of
// codegen/Kernel/Bodies.h.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_ROWS_VALUES_H
#define MP_CODEGEN_CUDA_ROWS_VALUES_H

#include "codegen/Kernel/Bodies.h"

namespace mlir::mp::cuda {

/// An i32 constant.
Value constantOf32(ImplicitLocOpBuilder &b, int64_t value);

/// Joins the elements of a vector in a tree.
Value combineElements(ImplicitLocOpBuilder &b, Operation *combiner,
                      Value vector);

/// Reads and writes `width` elements at `index` (i64, in elements) behind a
/// global pointer. The address is a multiple of the access, up to 16 bytes.
Value loadElements(ImplicitLocOpBuilder &b, Value pointer, Value index,
                   Type element, int64_t width);
void storeElements(ImplicitLocOpBuilder &b, Value value, Value pointer,
                   Value index);

/// An intrinsic of LLVM with one result of its operand's type, such as
/// "llvm.sqrt", which NVPTX rounds correctly.
Value callIntrinsic(ImplicitLocOpBuilder &b, StringRef name, Value operand);

/// Runs `body` where `condition` holds; without one, always.
void emitIf(ImplicitLocOpBuilder &b, Value condition,
            llvm::function_ref<void()> body);

/// The conjunction of two conditions of which each may be null (true).
Value bothOf(ImplicitLocOpBuilder &b, Value left, Value right);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_VALUES_H
