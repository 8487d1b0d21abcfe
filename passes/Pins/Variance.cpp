//===- Variance.cpp - variances and root mean squares by hand -------------===//

#include "passes/Pins/PinContext.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

static bool isSum(Operation *op) {
  PinRole role = pinRoleOf(op);
  return op->getNumOperands() == 1 &&
         (role == PinRole::Mean || role == PinRole::Sum);
}

static bool hasRole(Operation *op, PinRole role) {
  return op && pinRoleOf(op) == role;
}

/// The square that `op` sums or averages; null if it sums something else.
static Operation *summedSquare(Operation *op) {
  if (!op || !isSum(op))
    return nullptr;
  Operation *square = producerOf(op->getOperand(0));
  return square && squared(square) ? square : nullptr;
}

/// The mean that `op` takes of `value`, or null.
static Operation *meanOf(Operation *op, Value value) {
  return hasRole(op, PinRole::Mean) && op->getNumOperands() == 1 &&
                 origin(op->getOperand(0)) == origin(value)
             ? op
             : nullptr;
}

static std::string squaresText(const PinContext &context, Operation *sum,
                               StringRef what) {
  int64_t count = elementsPerResult(sum);
  std::string text =
      (count > 0 ? std::to_string(count) + " squared " + what.str() + " add up"
                 : "squared " + what.str() + " add up");
  const HalfFormat &half = context.half;
  if (half.isF16())
    return text + "; beyond " + numberText(std::sqrt(half.largest)) +
           " a square is infinite in f16";
  return text + "; " + half.name.str() + " rounds each by up to " +
         numberText(100 * half.unitRoundoff()) + " %";
}

//===----------------------------------------------------------------------===//
// Variances
//===----------------------------------------------------------------------===//

/// sum((x - mean(x))^2): the mean of x, or null.
static Operation *meanBeforeSquare(Operation *square) {
  Operation *difference = producerOf(squared(square));
  if (!hasRole(difference, PinRole::Subtract) ||
      difference->getNumOperands() != 2)
    return nullptr;
  Value a = difference->getOperand(0), b = difference->getOperand(1);
  if (Operation *mean = meanOf(producerOf(b), a))
    return mean;
  return meanOf(producerOf(a), b);
}

static void pinDeviations(PinContext &context, Operation *sum) {
  Operation *square = summedSquare(sum);
  Operation *mean = square ? meanBeforeSquare(square) : nullptr;
  if (!mean)
    return;
  std::string why = squaresText(context, sum, "deviations");
  for (Operation *op : {mean, square, sum})
    context.pin(op, PinRule::Variance, PinWhere::result, why);
}

/// mean(x^2) - mean(x)^2, whose leading bits cancel.
static void pinDifferenceOfMeans(PinContext &context, Operation *op) {
  if (op->getNumOperands() != 2)
    return;
  Operation *sum = producerOf(op->getOperand(0));
  Operation *squaredMean = producerOf(op->getOperand(1));
  Operation *square = summedSquare(sum);
  Value mean = squaredMean ? squared(squaredMean) : Value();
  Operation *meanOp =
      square && mean ? meanOf(producerOf(mean), squared(square)) : nullptr;
  if (!meanOp)
    return;
  std::string why = "a variance as the difference of two means of " +
                    std::to_string(elementsPerResult(sum)) +
                    " elements: where they agree in " +
                    std::to_string(context.half.precision) +
                    " bits, nothing of it is left in " +
                    context.half.name.str();
  for (Operation *part : {square, sum, meanOp, squaredMean, op})
    context.pin(part, PinRule::Variance, PinWhere::result, why);
}

void mlir::mp::detectVariances(PinContext &context) {
  for (PinRole role : {PinRole::Mean, PinRole::Sum})
    for (Operation *op : context.withRole(role))
      pinDeviations(context, op);
  for (Operation *op : context.withRole(PinRole::Subtract))
    pinDifferenceOfMeans(context, op);
}

//===----------------------------------------------------------------------===//
// Root mean squares
//===----------------------------------------------------------------------===//

/// True for sqrt, rsqrt and powers of +-1/2.
static bool isRoot(Operation *op) {
  switch (pinRoleOf(op)) {
  case PinRole::Root:
  case PinRole::InverseRoot:
    return true;
  case PinRole::Power: {
    std::optional<double> exponent = numberArg(op, "exponent");
    return exponent && std::abs(*exponent) == 0.5;
  }
  default:
    return false;
  }
}

/// The operations from behind `sum` to the root of it, perhaps with an epsilon
/// or a division by the count between; empty if no root follows.
static SmallVector<Operation *> rootsBehind(Operation *sum) {
  SmallVector<Operation *> found;
  forEachReader(sum->getResult(0), [&](OpOperand &use) {
    Operation *reader = use.getOwner();
    Value other;
    if (isRoot(reader)) {
      found.push_back(reader);
      return;
    }
    bool isShift = hasRole(reader, PinRole::Add) ||
                   hasRole(reader, PinRole::Divide) ||
                   hasRole(reader, PinRole::Clamp);
    if (!isShift || reader->getNumResults() != 1 ||
        (!literalOf(reader, other) && !numberArg(reader, "min")))
      return;
    size_t before = found.size();
    forEachReader(reader->getResult(0), [&](OpOperand &next) {
      if (isRoot(next.getOwner()))
        found.push_back(next.getOwner());
    });
    if (found.size() != before)
      found.push_back(reader);
  });
  return found;
}

static void pinRootMeanSquare(PinContext &context, Operation *sum) {
  Operation *square = summedSquare(sum);
  if (!square)
    return;
  SmallVector<Operation *> parts = rootsBehind(sum);
  if (parts.empty())
    return;
  std::string why = squaresText(context, sum, "elements");
  parts.append({square, sum});
  for (Operation *part : parts)
    context.pin(part, PinRule::RootMeanSquare, PinWhere::result, why);
}

void mlir::mp::detectRootMeanSquares(PinContext &context) {
  for (PinRole role : {PinRole::Mean, PinRole::Sum})
    for (Operation *op : context.withRole(role))
      pinRootMeanSquare(context, op);
}
