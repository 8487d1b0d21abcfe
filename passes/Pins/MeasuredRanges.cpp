//===- MeasuredRanges.cpp - pins from what calibration measured -----------===//

#include "passes/Pins/PinContext.h"
#include "passes/Pins/Ranges.h"

using namespace mlir;
using namespace mlir::mp;

/// Powers of two between the largest measured value and the end of the range
/// that other batches may need.
static constexpr double kHeadroom = 1;
/// The share of elements that may become zero.
static constexpr double kUnderflow = 0.05;

static void pinMeasured(PinContext &context, Value value, const Range &range) {
  const HalfFormat &half = context.half;
  MLIRContext *ctx = context.func.getContext();
  FloatType type =
      half.isF16() ? FloatType(Float16Type::get(ctx)) : BFloat16Type::get(ctx);
  if (range.headroom(type) < kHeadroom)
    context.pinResult(value, PinRule::MeasuredOverflow,
                      "measured up to " + numberText(range.absmax) + "; " +
                          half.name + " ends at " + numberText(half.largest));
  double lost =
      half.isF16() ? range.belowSubnormalF16 : range.belowSubnormalBF16;
  if (lost > kUnderflow)
    context.pinResult(value, PinRule::MeasuredUnderflow,
                      "measured: " + numberText(100 * lost) + " % of " +
                          numberText(double(range.nonzero)) +
                          " elements become zero in " + half.name);
}

void mlir::mp::detectMeasuredRanges(PinContext &context) {
  if (!context.measured || context.measured->size() == 0)
    return;
  for (Operation &op : context.operations()) {
    if (isTransparent(&op))
      continue; // its range is its operand's
    for (OpResult result : op.getResults())
      if (const Range *range = context.measured->find(result);
          range && isPinnable(result.getType()))
        pinMeasured(context, result, *range);
  }
}
