//===- Tensor.h - values of the reference interpreter ----------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_TENSOR_H
#define CODEGEN_REFERENCE_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace mlir::mp::reference {

using Shape = SmallVector<int64_t, 4>;

/// A dense tensor in row-major order. Floats are held as doubles, each of which
/// is a value of `element`; integers, booleans and indices as int64_t. A scalar
/// (`index`, `i1`, `f64`) is a tensor of rank 0.
struct Tensor {
  Type element;
  Shape shape;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  Tensor() = default;
  /// Zeros.
  Tensor(Type element, ArrayRef<int64_t> shape);

  bool isFloat() const { return isa<FloatType>(element); }
  int64_t rank() const { return shape.size(); }
  int64_t numElements() const;

  /// Element `i` as a double, of whatever kind.
  double number(int64_t i) const { return isFloat() ? floats[i] : ints[i]; }

  /// Stores `value` rounded once to the element type; an integer type drops the
  /// fraction and wraps, i1 becomes true for every value but zero.
  void set(int64_t i, double value);
  void setInt(int64_t i, int64_t value);

  /// Copies an element of the same type, bits unchanged.
  void copy(int64_t i, const Tensor &from, int64_t j);
};

int64_t numElements(ArrayRef<int64_t> shape);

/// The nearest value of the float type `type`, ties to even.
double roundTo(Type type, double value);

/// True if the interpreter can hold elements of `type`.
bool isSupportedElement(Type type);

/// Visits every index of `shape` in row-major order, with its number.
void forEachIndex(ArrayRef<int64_t> shape,
                  llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> visit);

/// The row-major number of `index`, where a dimension of size 1 is read again
/// and again and missing leading dimensions are ignored: broadcasting.
int64_t broadcastOffset(ArrayRef<int64_t> shape, ArrayRef<int64_t> index);

/// Bit for bit the same value; all NaN count as one, since neither PyTorch nor
/// hardware promises a payload.
bool sameBits(double a, double b);

/// The first element that differs, -1 for none; shapes and types must agree.
int64_t firstDifference(const Tensor &a, const Tensor &b);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_TENSOR_H
