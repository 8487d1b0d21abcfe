//===- ReductionDepth.cpp - sums of more terms than a half counts ---------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// "a bf16 sum of equal terms stops at 256 of them".
static std::string depthText(const HalfFormat &half, int64_t depth) {
  std::string count = depth ? std::to_string(depth) : "an unknown number of";
  std::string text = count + " terms add up; in " + half.name.str() +
                     " a sum of equal terms stops growing at " +
                     numberText(half.exactIntegers());
  if (depth)
    text += ", and rounding " + std::to_string(depth) + " times by " +
            numberText(half.unitRoundoff()) + " can cost " +
            numberText(depth * half.unitRoundoff()) + " times the sum";
  return text;
}

/// How many elements each sum has: the product of the sizes that are summed
/// over; 0 where that is not known.
static void pinDeep(PinContext &context, Operation *op, PinRule rule,
                    int64_t depth) {
  if (depth == 0 || double(depth) > context.half.exactIntegers())
    context.pin(op, rule, PinWhere::result, depthText(context.half, depth));
}

void mlir::mp::detectDeepReductions(PinContext &context) {
  for (Operation *op : context.ofKind(OpKind::Reduction))
    if (op->getNumOperands() != 0)
      pinDeep(context, op, PinRule::ReductionDepth, elementsPerResult(op));
}

/// The indices of lookups whose gradients `op` adds up; null if it does
/// something else. What the graph computed are positions without repetition,
/// such as the slots of a router; an argument holds tokens.
static Value lookedUp(Operation *op) {
  if (op->getNumOperands() < 2)
    return {};
  bool adds = opKindOf(op) == OpKind::Scatter &&
              (numberArg(op, "accumulate") == 1.0 || op->getNumOperands() == 2);
  Value indices = op->getOperand(1);
  bool isInteger = getElementTypeOrSelf(indices.getType()).isInteger();
  return adds && isInteger && isBackward(op) &&
                 isa<BlockArgument>(origin(indices))
             ? indices
             : Value();
}

void mlir::mp::detectEmbeddingGradients(PinContext &context) {
  for (Operation *op : context.withRole(PinRole::LookupGradient))
    if (Value indices = lookedUp(op))
      pinDeep(context, op, PinRule::EmbeddingGradient,
              staticNumElements(indices.getType()).value_or(0));
}
