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

static void pinEpsilon(PinContext &context, Operation *op,
                       std::optional<double> epsilon, bool isAdded) {
  if (!epsilon || *epsilon <= 0)
    return;
  std::string loss = lossOf(*epsilon, isAdded, context.half);
  if (!loss.empty() && hasReader(op->getResult(0), failsAtZero))
    context.pin(op, PinRule::SmallEpsilon, PinWhere::result,
                "epsilon " + numberText(*epsilon) + " " + loss);
}

void mlir::mp::detectSmallEpsilons(PinContext &context) {
  Value operand;
  for (Operation *op : context.withRole(PinRole::Add))
    pinEpsilon(context, op, literalOf(op, operand), /*isAdded=*/true);
  for (Operation *op : context.withRole(PinRole::Clamp))
    pinEpsilon(context, op, numberArg(op, "min"), /*isAdded=*/false);
}
