//===- Tensor.cpp - values of the reference interpreter -------------------===//

#include "codegen/Reference/Tensor.h"
#include "runtime/Numerics.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp::reference;

int64_t mlir::mp::reference::numElements(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

double mlir::mp::reference::roundTo(Type type, double value) {
  if (type.isF16())
    return mpopt::roundToF16(value);
  if (type.isBF16())
    return mpopt::roundToBF16(value);
  if (type.isF32())
    return mpopt::roundToF32(value);
  return value;
}

bool mlir::mp::reference::isSupportedElement(Type type) {
  if (isa<FloatType>(type))
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() <= 64;
  return isa<IndexType>(type);
}

Tensor::Tensor(Type element, ArrayRef<int64_t> shape)
    : element(element), shape(shape.begin(), shape.end()) {
  if (isFloat())
    floats.resize(numElements());
  else
    ints.resize(numElements());
}

int64_t Tensor::numElements() const { return reference::numElements(shape); }

/// `value` wrapped to the width and signedness of `type`.
static int64_t wrap(Type type, int64_t value) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() == 64)
    return value;
  if (integer.getWidth() == 1)
    return value != 0;
  unsigned unused = 64 - integer.getWidth();
  uint64_t shifted = uint64_t(value) << unused;
  return integer.isUnsigned() ? int64_t(shifted >> unused)
                              : int64_t(shifted) >> unused;
}

/// A conversion of a float outside of int64_t's range is undefined in C++ and
/// in PyTorch; the reference gives what x86 gives.
static int64_t truncateToInt(double value) {
  if (std::isnan(value) || value < -0x1p63 || value >= 0x1p63)
    return INT64_MIN;
  return int64_t(value);
}

void Tensor::set(int64_t i, double value) {
  if (isFloat())
    floats[i] = roundTo(element, value);
  else if (element.isInteger(1))
    ints[i] = value != 0;
  else
    ints[i] = wrap(element, truncateToInt(value));
}

/// `value` as a double from which a narrower format rounds as from `value`
/// itself: bits that do not fit are kept as one sticky bit.
static double toOddDouble(int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
  if (magnitude >> 53) {
    uint64_t lost = magnitude & 0x7ff;
    magnitude = (magnitude & ~uint64_t(0x7ff)) | (lost ? 0x800 : 0);
  }
  return value < 0 ? -double(magnitude) : double(magnitude);
}

void Tensor::setInt(int64_t i, int64_t value) {
  if (element.isF64())
    floats[i] = double(value);
  else if (isFloat())
    set(i, toOddDouble(value));
  else
    ints[i] = wrap(element, value);
}

void Tensor::copy(int64_t i, const Tensor &from, int64_t j) {
  if (isFloat())
    floats[i] = from.floats[j];
  else
    ints[i] = from.ints[j];
}

void mlir::mp::reference::forEachIndex(
    ArrayRef<int64_t> shape,
    llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> visit) {
  Shape index(shape.size(), 0);
  for (int64_t i = 0, end = numElements(shape); i != end; ++i) {
    visit(index, i);
    for (int64_t d = int64_t(shape.size()) - 1; d >= 0; --d) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

int64_t mlir::mp::reference::broadcastOffset(ArrayRef<int64_t> shape,
                                             ArrayRef<int64_t> index) {
  ArrayRef<int64_t> own = index.take_back(shape.size());
  int64_t offset = 0;
  for (auto [size, position] : llvm::zip(shape, own))
    offset = offset * size + (size == 1 ? 0 : position);
  return offset;
}

bool mlir::mp::reference::sameBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return mpopt::bitsOf(a) == mpopt::bitsOf(b);
}

int64_t mlir::mp::reference::firstDifference(const Tensor &a, const Tensor &b) {
  for (int64_t i = 0, end = a.numElements(); i != end; ++i)
    if (a.isFloat() ? !sameBits(a.floats[i], b.floats[i])
                    : a.ints[i] != b.ints[i])
      return i;
  return -1;
}
