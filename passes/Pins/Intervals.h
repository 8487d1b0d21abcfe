//===- Intervals.h - between which numbers values lie -----------*- C++ -*-===//
//
// Interval analysis from what a graph says itself: literals, clamps, functions
// with a bounded image, and integers. One pass over the operations, forward;
// what is not known lies between the infinities.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PINS_INTERVALS_H
#define MP_PASSES_PINS_INTERVALS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <limits>

namespace mlir::mp {

enum class RangeRule {
  Unknown,
  Fixed,  ///< between two numbers, whatever the operands
  Within, ///< the operand, cut at two numbers
  Same,   ///< one of the operands' elements
  Union,  ///< one of the operands' elements or of the literals
  Constant,
  Counting, ///< start, start + step, ...
  Sum,
  Difference,
  ReverseDifference,
  Product,
  Quotient, ///< by a literal
  Negative,
  Magnitude,
  Square,
  Exponential,
  Clamp,        ///< between the literals `min` and `max`
  Total,        ///< a sum over dimensions
  RunningTotal, ///< a sum along one dimension
  Average,
  Floor, ///< rounding to an integer
};

struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool isInteger = false;

  static Interval of(double number);
  double magnitude() const;
  /// True if both ends are finite.
  bool isBounded() const;
  bool operator==(const Interval &other) const {
    return low == other.low && high == other.high &&
           isInteger == other.isInteger;
  }
};

class Intervals {
public:
  explicit Intervals(func::FuncOp func);

  /// The interval of `value`; of integers at most that of their type.
  Interval of(Value value) const;

private:
  Interval compute(Operation *op) const;
  llvm::DenseMap<Value, Interval> known;
};

} // namespace mlir::mp

#endif // MP_PASSES_PINS_INTERVALS_H
