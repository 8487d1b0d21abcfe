//===- Values.h - scalar arithmetic on vectors, and memory ------*- C++ -*-===//
//
// Small builders that all row kernels share. A value of width 1 is a scalar,
// never a vector of one element.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_ROWS_VALUES_H
#define MP_CODEGEN_CUDA_ROWS_VALUES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp::cuda {

/// `element`, or a vector of `width` of them.
Type typeOf(Type element, int64_t width);

/// An i64 or i32 constant.
Value constantOf(ImplicitLocOpBuilder &b, int64_t value);
Value constantOf32(ImplicitLocOpBuilder &b, int64_t value);
/// A constant with `value` in each element.
Value splatOf(ImplicitLocOpBuilder &b, TypedAttr value, int64_t width);

/// `scalar` in each of `width` elements.
Value broadcastTo(ImplicitLocOpBuilder &b, Value scalar, int64_t width);

/// `a * factor + c` in i64.
Value scaled(ImplicitLocOpBuilder &b, Value a, int64_t factor, Value c);

/// The value with which a reduction by `combiner` starts.
TypedAttr neutralOf(Operation *combiner);

/// What the ops of a body are cloned with.
struct BodyArguments {
  /// One for each block argument, all of the same width; null if unused.
  SmallVector<Value> values;
  /// Positions in the loops, as index, of that width.
  SmallVector<Value> indices;
  int64_t width = 1;
  /// Whether multiplications and additions may be fused.
  bool contract = false;
};

/// Clones the body of `op` on scalars or vectors; returns what it yields.
/// With `combiner`, returns what it would join with the accumulator instead.
SmallVector<Value> cloneBody(ImplicitLocOpBuilder &b, linalg::GenericOp op,
                             const BodyArguments &arguments,
                             Operation *combiner = nullptr);

/// Clones `combiner` on two values.
Value combine(ImplicitLocOpBuilder &b, Operation *combiner, Value left,
              Value right);

/// Joins the elements of a vector in a tree.
Value combineElements(ImplicitLocOpBuilder &b, Operation *combiner,
                      Value vector);

/// Bytes of an element in memory; i1 takes one.
int64_t storedBytes(Type element);
/// How an element is stored: i1 as i8.
Type storedType(Type element);

/// Reads and writes `width` elements at `index` (i64, in elements) behind a
/// global pointer. The address is a multiple of the access, up to 16 bytes.
Value loadElements(ImplicitLocOpBuilder &b, Value pointer, Value index,
                   Type element, int64_t width);
void storeElements(ImplicitLocOpBuilder &b, Value value, Value pointer,
                   Value index);

/// An intrinsic of LLVM with one result of its operand's type, such as
/// "llvm.sqrt", which NVPTX rounds correctly; libdevice's root need not be.
Value callIntrinsic(ImplicitLocOpBuilder &b, StringRef name, Value operand);

/// Runs `body` where `condition` holds; without one, always.
void emitIf(ImplicitLocOpBuilder &b, Value condition,
            llvm::function_ref<void()> body);

/// The conjunction of two conditions of which each may be null (true).
Value bothOf(ImplicitLocOpBuilder &b, Value left, Value right);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_VALUES_H
