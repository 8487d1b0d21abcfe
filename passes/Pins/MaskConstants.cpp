//===- MaskConstants.cpp - fillers that a half makes infinite -------------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// The first number that `op` puts among its elements, or scales them with, and
/// that is finite but not in the half format.
static std::optional<double> lostNumber(Operation *op, const HalfFormat &half) {
  for (StringRef name :
       {"value", "fill_value", "other", "self", "s", "min", "max"})
    if (std::optional<double> number = numberArg(op, name))
      if (half.overflows(*number))
        return number;
  return std::nullopt;
}

/// The same of a constant tensor.
static std::optional<double> lostConstant(Operation *op,
                                          const HalfFormat &half) {
  for (Value operand : op->getOperands())
    if (std::optional<double> number = constantOf(operand))
      if (half.overflows(*number))
        return number;
  return std::nullopt;
}

static void pinFiller(PinContext &context, Operation *op,
                      std::optional<double> number) {
  if (!number)
    return;
  StringRef infinity = *number < 0 ? "-inf" : "inf";
  context.pin(op, PinRule::MaskConstant, PinWhere::result,
              numberText(*number) + " is " + infinity + " in " +
                  context.half.name +
                  "; a row that is masked everywhere becomes NaN");
}

void mlir::mp::detectMaskConstants(PinContext &context) {
  for (Operation &op : context.operations())
    if (op.getNumResults() != 0 && isPinnable(op.getResult(0).getType()) &&
        op.hasAttr("args"))
      pinFiller(context, &op, lostNumber(&op, context.half));
  for (Operation *op : context.withRole(PinRole::Fill))
    pinFiller(context, op, lostConstant(op, context.half));
}
