//===- ProbabilityLosses.cpp - logarithms of probabilities ----------------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// Between a probability and its logarithm stand an epsilon, a clamp and a
/// complement at most.
static constexpr unsigned kMaxSteps = 8;

static bool isAdjustment(Operation *op) {
  Value operand;
  switch (pinRoleOf(op)) {
  case PinRole::Add:
  case PinRole::Subtract:
  case PinRole::Multiply:
    return literalOf(op, operand).has_value();
  case PinRole::Clamp:
    return op->getNumOperands() == 1;
  default:
    return isTransparent(op) || opKindOf(op) == OpKind::Sign;
  }
}

/// The operations from behind the logarithm `log` to the probability; empty if
/// it is not one's logarithm.
static SmallVector<Operation *> stepsToProbability(Operation *log) {
  SmallVector<Operation *> steps;
  Value value = log->getOperand(0);
  for (unsigned i = 0; i != kMaxSteps; ++i) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumOperands() == 0)
      return {};
    steps.push_back(op);
    if (pinRoleOf(op) == PinRole::Probability)
      return steps;
    if (!isAdjustment(op))
      return {};
    value = op->getOperand(0);
    if (op->getNumOperands() == 2)
      literalOf(op, value);
  }
  return {};
}

void mlir::mp::detectProbabilityLosses(PinContext &context) {
  for (Operation *op : context.withRole(PinRole::Logarithm)) {
    SmallVector<Operation *> steps = stepsToProbability(op);
    if (steps.empty())
      continue;
    std::string why = "a probability whose logarithm is taken; next to 1 " +
                      context.half.name.str() + " has " +
                      numberText(1 - context.half.unitRoundoff());
    for (Operation *step : steps)
      if (!isTransparent(step))
        context.pin(step, PinRule::ProbabilityLoss, PinWhere::result, why);
    context.pin(op, PinRule::ProbabilityLoss, PinWhere::operands, why);
  }
}
