//===- SmallEpsilon.cpp - guards against zero that a half loses -----------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// True if zero in this operand would give an infinity.
static bool failsAtZero(OpOperand &use) {
  Operation *op = use.getOwner();
  switch (pinRoleOf(op)) {
  case PinRole::InverseRoot:
  case PinRole::Root: // its gradient does
  case PinRole::Inverse:
  case PinRole::Logarithm:
    return true;
  case PinRole::Divide:
    return use.getOperandNumber() == 1;
  case PinRole::Power: {
    std::optional<double> exponent = numberArg(op, "exponent");
    return exponent && *exponent < 1;
  }
  default:
    return false;
  }
}

/// The epsilon that `op` adds or cuts at; none if it does neither.
static std::optional<double> epsilonOf(Operation *op) {
  Value operand;
  if (pinRoleOf(op) == PinRole::Add)
    return literalOf(op, operand);
  if (pinRoleOf(op) == PinRole::Clamp)
    return numberArg(op, "min");
  return std::nullopt;
}

/// What the half format does to `epsilon`; empty if nothing.
static std::string lossOf(double epsilon, bool isAdded,
                          const HalfFormat &half) {
  if (epsilon < half.smallestNormal)
    return "is below " + half.name.str() + "'s smallest normal number, " +
           numberText(half.smallestNormal);
  if (isAdded && epsilon < half.unitRoundoff())
    return "vanishes when it is added to 1 in " + half.name.str() +
           ", whose step there is " + numberText(half.stepAt(1));
  return {};
}

void mlir::mp::detectSmallEpsilons(PinContext &context) {
  for (Operation &op : context.operations()) {
    std::optional<double> epsilon = epsilonOf(&op);
    if (!epsilon || *epsilon <= 0)
      continue;
    std::string loss =
        lossOf(*epsilon, pinRoleOf(&op) == PinRole::Add, context.half);
    if (loss.empty() || !hasReader(op.getResult(0), failsAtZero))
      continue;
    context.pin(&op, PinRule::SmallEpsilon, PinWhere::result,
                "epsilon " + numberText(*epsilon) + " " + loss);
  }
}
