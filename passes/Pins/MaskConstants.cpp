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
  if (pinRoleOf(op) != PinRole::Fill)
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (std::optional<double> number = constantOf(operand))
      if (half.overflows(*number))
        return number;
  return std::nullopt;
}

void mlir::mp::detectMaskConstants(PinContext &context) {
  for (Operation &op : context.operations()) {
    if (op.getNumResults() == 0 || !isPinnable(op.getResult(0).getType()))
      continue;
    std::optional<double> number = lostNumber(&op, context.half);
    if (!number)
      continue;
    StringRef infinity = *number < 0 ? "-inf" : "inf";
    context.pin(&op, PinRule::MaskConstant, PinWhere::result,
                numberText(*number) + " is " + infinity + " in " +
                    context.half.name +
                    "; a row that is masked everywhere becomes NaN");
  }
}
