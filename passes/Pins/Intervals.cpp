//===- Intervals.cpp - between which numbers values lie -------------------===//

#include "passes/Pins/Intervals.h"
#include "passes/Pins/PinMatch.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::mp;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
struct RangeRow {
  RangeRule rule;
  double low, high;
};
} // namespace

static RangeRow rangeRowOf(Operation *op) {
  static const llvm::StringMap<RangeRow> index = {
#define MP_RANGE_ROW(NAME, RULE, LOW, HIGH)                                    \
  {NAME, {RangeRule::RULE, LOW, HIGH}},
#include "passes/Pins/RangeRules.def"
  };
  if (auto it = index.find(stripOverload(frameworkCallee(op)));
      it != index.end())
    return it->second;
  OpKind kind = opKindOf(op);
  bool hands = isa<CastOp, RoundOp, MaterializeOp>(op) ||
               isDataMovementKind(kind) || kind == OpKind::Monotone;
  return {hands ? RangeRule::Same : RangeRule::Unknown, 0, 0};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Interval Interval::of(double number) {
  return {number, number, number == std::floor(number)};
}

double Interval::magnitude() const {
  return std::max(std::abs(low), std::abs(high));
}

bool Interval::isBounded() const {
  return std::isfinite(low) && std::isfinite(high);
}

/// NaN, as of infinity minus infinity, says nothing.
static Interval makeInterval(double low, double high, bool isInteger) {
  return {std::isnan(low) ? -kInfinity : low,
          std::isnan(high) ? kInfinity : high, isInteger};
}

static Interval add(const Interval &a, const Interval &b) {
  return makeInterval(a.low + b.low, a.high + b.high,
                      a.isInteger && b.isInteger);
}

static Interval negate(const Interval &a) {
  return {-a.high, -a.low, a.isInteger};
}

static Interval multiply(const Interval &a, const Interval &b) {
  double low = kInfinity, high = -kInfinity;
  for (double x : {a.low, a.high})
    for (double y : {b.low, b.high}) {
      // Zero times an end that is not known is zero.
      double product = x == 0 || y == 0 ? 0 : x * y;
      low = std::min(low, product);
      high = std::max(high, product);
    }
  return {low, high, a.isInteger && b.isInteger};
}

static Interval unite(const Interval &a, const Interval &b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high),
          a.isInteger && b.isInteger};
}

static Interval magnitudeOf(const Interval &a) {
  double low = a.low <= 0 && a.high >= 0
                   ? 0
                   : std::min(std::abs(a.low), std::abs(a.high));
  return {low, a.magnitude(), a.isInteger};
}

/// Where the limits cross, the upper one wins, as in PyTorch.
static Interval cut(const Interval &a, double low, double high) {
  low = std::min(low, high);
  double newLow = std::clamp(a.low, low, high);
  double newHigh = std::clamp(a.high, low, high);
  bool isInteger = a.isInteger &&
                   (newLow == a.low || newLow == std::floor(newLow)) &&
                   (newHigh == a.high || newHigh == std::floor(newHigh));
  return {newLow, newHigh, isInteger};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What the type of a value says by itself.
static Interval ofType(Type type) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!integer)
    return {};
  if (integer.getWidth() == 1)
    return {0, 1, true};
  if (integer.isUnsigned())
    return {0, std::exp2(integer.getWidth()) - 1, true};
  double half = std::exp2(integer.getWidth() - 1);
  return {-half, half - 1, true};
}

static Interval fallback(Operation *op) {
  return ofType(op->getResult(0).getType());
}

/// The second operand of a binary operation: a value or the literal `other`.
static Interval second(Operation *op, const Intervals &intervals) {
  if (op->getNumOperands() > 1)
    return intervals.of(op->getOperand(1));
  if (std::optional<double> literal = numberArg(op, "other"))
    return Interval::of(*literal);
  return {};
}

/// add and sub multiply their second operand with `alpha`.
static Interval scaledSecond(Operation *op, const Intervals &intervals) {
  Interval scale = Interval::of(numberArg(op, "alpha").value_or(1));
  return multiply(second(op, intervals), scale);
}

static Interval counting(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() == 0)
    return fallback(op);
  double start = numberArg(op, "start").value_or(0);
  double step = numberArg(op, "step").value_or(1);
  double last = start + step * double(type.getNumElements() - 1);
  bool isInteger = start == std::floor(start) && step == std::floor(step);
  // linspace has no step, and an end that belongs to it.
  if (std::optional<double> steps = numberArg(op, "steps")) {
    last = numberArg(op, "end").value_or(last);
    isInteger = false;
  }
  return {std::min(start, last), std::max(start, last), isInteger};
}

static Interval united(Operation *op, const Intervals &intervals) {
  std::optional<Interval> all;
  auto include = [&](const Interval &next) {
    all = all ? unite(*all, next) : next;
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (!isMaskOrIndex(op, i))
      include(intervals.of(operand));
  for (StringRef name : {"value", "other", "self"})
    if (std::optional<double> literal = numberArg(op, name))
      include(Interval::of(*literal));
  return all.value_or(fallback(op));
}

/// `a` times how many elements of the operand one of the result sums.
static Interval total(const Interval &a, int64_t count) {
  return count <= 0 ? Interval() : multiply(a, Interval::of(double(count)));
}

static int64_t sizeAlong(Operation *op, StringRef argument) {
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  std::optional<double> dim = numberArg(op, argument);
  if (!type || !dim)
    return 0;
  int64_t i = *dim < 0 ? int64_t(*dim) + type.getRank() : int64_t(*dim);
  return i < 0 || i >= type.getRank() || type.isDynamicDim(i)
             ? 0
             : type.getDimSize(i);
}

/// A partial sum may be zero terms less than the whole.
static Interval running(Operation *op, const Interval &a) {
  Interval all = total(a, sizeAlong(op, "dim"));
  return {std::min(all.low, a.low), std::max(all.high, a.high), a.isInteger};
}

static Interval floored(const Interval &a) {
  return {std::floor(a.low), std::ceil(a.high), true};
}

static Interval constant(Operation *op) {
  for (StringRef name : {"fill_value", "s"})
    if (std::optional<double> literal = numberArg(op, name))
      return Interval::of(*literal);
  return fallback(op);
}

static Interval quotient(Operation *op, const Interval &a) {
  std::optional<double> literal = numberArg(op, "other");
  if (!literal || *literal == 0)
    return fallback(op);
  Interval quotient = multiply(a, Interval::of(1 / *literal));
  quotient.isInteger = false;
  return quotient;
}

static Interval clamped(Operation *op, const Interval &a) {
  if (op->getNumOperands() > 1)
    return fallback(op);
  auto limit = [&](StringRef name, StringRef other, double none) {
    std::optional<double> number = numberArg(op, name);
    return number ? *number : numberArg(op, other).value_or(none);
  };
  return cut(a, limit("min", "min_val", -kInfinity),
             limit("max", "max_val", kInfinity));
}

/// What each element of the result is of the same element of operands.
static Interval elementwise(Operation *op, RangeRule rule,
                            const Interval &first, const Intervals &intervals) {
  switch (rule) {
  case RangeRule::Sum:
    return add(first, scaledSecond(op, intervals));
  case RangeRule::Difference:
    return add(first, negate(scaledSecond(op, intervals)));
  case RangeRule::ReverseDifference:
    return add(second(op, intervals), negate(first));
  case RangeRule::Product:
    if (op->getNumOperands() > 1 && op->getOperand(0) == op->getOperand(1))
      return multiply(magnitudeOf(first), magnitudeOf(first));
    return multiply(first, second(op, intervals));
  case RangeRule::Quotient:
    return quotient(op, first);
  case RangeRule::Negative:
    return negate(first);
  case RangeRule::Magnitude:
    return magnitudeOf(first);
  case RangeRule::Square:
    return multiply(magnitudeOf(first), magnitudeOf(first));
  case RangeRule::Exponential:
    return {std::exp(first.low), std::exp(first.high), false};
  case RangeRule::Clamp:
    return clamped(op, first);
  case RangeRule::Floor:
    return floored(first);
  default:
    llvm_unreachable("is no elementwise rule");
  }
}

Interval Intervals::compute(Operation *op) const {
  RangeRow row = rangeRowOf(op);
  Interval first = op->getNumOperands() ? of(op->getOperand(0)) : fallback(op);
  switch (row.rule) {
  case RangeRule::Unknown:
    return fallback(op);
  case RangeRule::Fixed:
    return {row.low, row.high, /*isInteger=*/row.low == row.high};
  case RangeRule::Within:
    return cut(first, row.low, row.high);
  case RangeRule::Same:
  case RangeRule::Union:
    return united(op, *this);
  case RangeRule::Constant:
    return constant(op);
  case RangeRule::Counting:
    return counting(op);
  case RangeRule::Total:
    return total(first, elementsPerResult(op));
  case RangeRule::RunningTotal:
    return running(op, first);
  case RangeRule::Average:
    return {first.low, first.high, false};
  default:
    return elementwise(op, row.rule, first, *this);
  }
}

/// Integers that are wider than their type wrap, and a float to integer
/// conversion drops the fraction.
static Interval fitted(Interval interval, Type type) {
  if (!getElementTypeOrSelf(type).isInteger())
    return interval;
  Interval bounds = ofType(type);
  if (interval.low < bounds.low || interval.high > bounds.high)
    return bounds;
  return floored(interval);
}

Intervals::Intervals(func::FuncOp func) {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (op.getNumResults() == 0 || !isa<TensorType>(op.getResult(0).getType()))
      continue;
    Interval interval = fitted(compute(&op), op.getResult(0).getType());
    if (!(interval == ofType(op.getResult(0).getType())))
      known[op.getResult(0)] = interval;
  }
}

Interval Intervals::of(Value value) const {
  auto it = known.find(value);
  return it == known.end() ? ofType(value.getType()) : it->second;
}
