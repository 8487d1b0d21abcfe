//===- Bodies.h - the arithmetic of a kernel on vectors ---------*- C++ -*-===//
//
// What the emitters of all backends build arithmetic with. A value of width 1
// is a scalar, never a vector of one element.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_KERNEL_BODIES_H
#define MP_CODEGEN_KERNEL_BODIES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp {

/// `element`, or a vector of `width` of them.
Type typeOf(Type element, int64_t width);
/// 1 for a scalar.
int64_t widthOf(Type type);

/// An i64 constant.
Value constantOf(ImplicitLocOpBuilder &b, int64_t value);
/// A constant with `value` in each element.
Value splatOf(ImplicitLocOpBuilder &b, TypedAttr value, int64_t width);

/// `scalar` in each of `width` elements.
Value broadcastTo(ImplicitLocOpBuilder &b, Value scalar, int64_t width);

/// `first`, `first + 1`, ... as index.
Value indicesFrom(ImplicitLocOpBuilder &b, Value first, int64_t width);

/// `a * factor + c` in i64; a null `c` is zero.
Value scaled(ImplicitLocOpBuilder &b, Value a, int64_t factor, Value c);

/// How an element is stored: i1 as i8.
Type storedType(Type element);
/// Bytes of an element in memory.
int64_t storedBytes(Type element);

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

/// Whether the body asks where it is.
bool readsIndex(linalg::GenericOp op);

/// Clones `combiner` on two values.
Value combine(ImplicitLocOpBuilder &b, Operation *combiner, Value left,
              Value right);

} // namespace mlir::mp

#endif // MP_CODEGEN_KERNEL_BODIES_H
