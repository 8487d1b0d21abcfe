//===- MovingAverages.cpp - states that move by small steps ---------------===//

#include "passes/Pins/PinContext.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

/// The literal factor of a product; none if both factors are values.
static std::optional<double> factorOf(Value value) {
  Operation *op = producerOf(value);
  Value operand;
  return op && pinRoleOf(op) == PinRole::Multiply ? literalOf(op, operand)
                                                  : std::nullopt;
}

/// b where `op` is (1 - b) * old + b * new, in one of three spellings.
static std::optional<double> shareOfNew(Operation *op) {
  if (pinRoleOf(op) == PinRole::Blend)
    return numberArg(op, "weight");
  if (op->getNumOperands() != 2)
    return std::nullopt;
  double alpha = numberArg(op, "alpha").value_or(1);
  std::optional<double> a = factorOf(op->getOperand(0));
  std::optional<double> b = factorOf(op->getOperand(1));
  if (!b && alpha != 1) // add(old * (1 - b), new, alpha=b)
    b = 1;
  if (!a || !b || std::abs(*a + *b * alpha - 1) > 1e-6)
    return std::nullopt;
  return std::min(*a, *b * alpha);
}

static void pinAverage(PinContext &context, Operation *op) {
  std::optional<double> share = shareOfNew(op);
  if (!share || *share <= 0 || *share > 0.5)
    return;
  double lost = 100 * context.half.unitRoundoff() / *share;
  context.pin(op, PinRule::MovingAverage, PinWhere::both,
              "takes " + numberText(*share) + " of each new value; in " +
                  context.half.name +
                  " it does not move when they differ by less than " +
                  numberText(lost) + " %");
}

/// True for a product of two values, one of which lies between 0 and 1; `other`
/// becomes the other one.
static bool isGated(PinContext &context, Value value, Value &other) {
  Operation *op = producerOf(value);
  if (!op || pinRoleOf(op) != PinRole::Multiply || op->getNumOperands() != 2)
    return false;
  for (unsigned gate : {0, 1}) {
    Interval interval = context.intervals.of(op->getOperand(gate));
    other = op->getOperand(1 - gate);
    if (interval.low == 0 && interval.high == 1)
      return true;
  }
  return false;
}

/// forget * state + input * candidate, where tanh bounds the candidate: the
/// cell of an LSTM.
static void pinCell(PinContext &context, Operation *op) {
  if (op->getNumOperands() != 2)
    return;
  Value first, second;
  if (!isGated(context, op->getOperand(0), first) ||
      !isGated(context, op->getOperand(1), second))
    return;
  auto isCandidate = [&](Value value) {
    Interval interval = context.intervals.of(value);
    return interval.low == -1 && interval.high == 1;
  };
  if (isCandidate(first) == isCandidate(second))
    return;
  context.pin(op, PinRule::CellState, PinWhere::result,
              "a state that grows by up to 1 in each step; " +
                  stepText(context.half, 1));
}

void mlir::mp::detectMovingAverages(PinContext &context) {
  for (PinRole role : {PinRole::Blend, PinRole::Add})
    for (Operation *op : context.withRole(role))
      pinAverage(context, op);
  if (guards(PinRule::CellState, context.half))
    for (Operation *op : context.withRole(PinRole::Add))
      pinCell(context, op);
}
