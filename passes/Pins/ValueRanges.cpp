//===- ValueRanges.cpp - numbers that a half format does not hold ---------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// What an integer type holds is no evidence of what a value is.
static constexpr double kTypeOnly = 0x1p30;

static bool isOneNumber(const Interval &interval) {
  return interval.low == interval.high;
}

static void pinIntegers(PinContext &context, Operation *op,
                        const Interval &interval) {
  const HalfFormat &half = context.half;
  double largest = interval.magnitude();
  if (!interval.isInteger || !interval.isBounded() || isOneNumber(interval) ||
      largest <= half.exactIntegers())
    return;
  std::string size = largest < kTypeOnly
                         ? "integers up to " + numberText(largest)
                         : std::string("integers of a type that has no bound");
  context.pin(op, PinRule::IntegerValues, PinWhere::result,
              size + "; " + half.name + " holds all of them up to " +
                  numberText(half.exactIntegers()) + " only");
}

static void pinOverflow(PinContext &context, Operation *op,
                        const Interval &interval) {
  const HalfFormat &half = context.half;
  double largest = interval.magnitude();
  if (!interval.isBounded() || !half.overflows(largest) ||
      (interval.isInteger && largest >= kTypeOnly))
    return;
  context.pin(op, PinRule::Overflow, PinWhere::result,
              "by the constants of the graph between " +
                  numberText(interval.low) + " and " +
                  numberText(interval.high) + "; " + half.name + " ends at " +
                  numberText(half.largest));
}

/// The graph rounds counts or positions already: nothing here can help, but it
/// should not be silent.
static void warnOfRounding(PinContext &context, Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast || !isHalf(cast.getTo()))
    return;
  Interval interval = context.intervals.of(cast.getInput());
  const HalfFormat &half = halfFormat(cast.getTo().isF16());
  double largest = interval.magnitude();
  if (!interval.isInteger || isOneNumber(interval) ||
      largest <= half.exactIntegers() || largest >= kTypeOnly)
    return;
  op->emitWarning("rounds integers up to ")
      << numberText(largest) << " to " << half.name
      << ", which holds all of them up to " << numberText(half.exactIntegers())
      << " only";
}

void mlir::mp::detectValueRanges(PinContext &context) {
  for (Operation &op : context.operations()) {
    if (op.getNumResults() == 0 || !isPinnable(op.getResult(0).getType()))
      continue;
    warnOfRounding(context, &op);
    Interval interval = context.intervals.of(op.getResult(0));
    pinIntegers(context, &op, interval);
    pinOverflow(context, &op, interval);
  }
}
