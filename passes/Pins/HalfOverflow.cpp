//===- HalfOverflow.cpp - products that leave the range of f16 ------------===//
//
// Both are about f16: bf16 has the range of f32.
//
//===----------------------------------------------------------------------===//

#include "passes/CastReasons.h"
#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

static MatmulOp productOf(Value value) {
  return origin(value).getDefiningOp<MatmulOp>();
}

static std::string depthText(MatmulOp product) {
  int64_t depth =
      cast<RankedTensorType>(product.getLhs().getType()).getShape().back();
  return ShapedType::isDynamic(depth) ? std::string("its products")
                                      : std::to_string(depth) + " products";
}

//===----------------------------------------------------------------------===//
// Residual streams
//===----------------------------------------------------------------------===//

/// True if the reader normalizes what it reads.
static bool normalizes(OpOperand &use) {
  Operation *op = use.getOwner();
  return (opKindOf(op) == OpKind::Norm && use.getOperandNumber() == 0) ||
         pinRoleOf(op) == PinRole::Statistics ||
         pinRoleOf(op) == PinRole::Mean || squared(op);
}

/// The product that dropout may have scaled or masked, added by `op`.
static MatmulOp addedProduct(Operation *op) {
  for (Value operand : op->getOperands()) {
    Value value = origin(operand);
    Operation *scaled = value.getDefiningOp();
    if (scaled && pinRoleOf(scaled) == PinRole::Multiply)
      value = scaled->getOperand(0);
    if (MatmulOp product = productOf(value))
      return product;
  }
  return nullptr;
}

/// A stream plus a projection: both as large as the sum, and computed.
static bool addsToStream(Operation *op) {
  return op->getNumOperands() == 2 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return staticNumElements(operand.getType()) ==
                      staticNumElements(op->getResult(0).getType()) &&
                  !isParameter(origin(operand));
         });
}

void mlir::mp::detectResidualStreams(PinContext &context) {
  if (!guards(PinRule::ResidualStream, context.half))
    return;
  for (Operation *op : context.withRole(PinRole::Add)) {
    if (!addsToStream(op) || isBackward(op))
      continue;
    MatmulOp product = addedProduct(op);
    if (!product || !hasReader(op->getResult(0), normalizes))
      continue;
    std::string why = depthText(product) +
                      " add up and join the residual stream; beyond " +
                      numberText(context.half.largest) +
                      " the norm behind makes NaN of the row";
    context.pin(product, PinRule::ResidualStream, PinWhere::result, why);
    context.pin(op, PinRule::ResidualStream, PinWhere::result, why);
  }
}

//===----------------------------------------------------------------------===//
// Attention scores
//===----------------------------------------------------------------------===//

/// Longer chains of scales and masks are not followed.
static constexpr unsigned kMaxSteps = 8;

/// Queries times keys: neither is a weight.
static bool isOfActivations(MatmulOp product) {
  return !isParameter(origin(product.getLhs())) &&
         !isParameter(origin(product.getRhs()));
}

/// The product behind scales, masks and biases of a softmax's operand.
static MatmulOp scoresBehind(Value value) {
  for (unsigned step = 0; step != kMaxSteps; ++step) {
    if (MatmulOp product = productOf(value))
      return product;
    Operation *op = producerOf(value);
    if (!op || op->getNumOperands() == 0)
      return nullptr;
    switch (pinRoleOf(op)) {
    case PinRole::Add:
    case PinRole::Multiply:
    case PinRole::Divide:
    case PinRole::Fill:
      break;
    default:
      return nullptr;
    }
    // where(mask, scores, filler): the mask is no float.
    Value next;
    for (Value operand : op->getOperands())
      if (isPinnable(operand.getType()) && !constantOf(operand)) {
        next = operand;
        break;
      }
    if (!next)
      return nullptr;
    value = next;
  }
  return nullptr;
}

/// The scores that `op` takes exponentials of; null if it is no softmax.
static Value scoresOf(Operation *op) {
  if (opKindOf(op) == OpKind::Softmax && !isBackward(op) &&
      pinRoleOf(op) == PinRole::Probability)
    return op->getOperand(0);
  // A softmax that was decomposed: exp(x - amax(x)).
  if (pinRoleOf(op) != PinRole::Exponential)
    return {};
  Operation *shifted = producerOf(op->getOperand(0));
  if (!shifted || pinRoleOf(shifted) != PinRole::Subtract ||
      shifted->getNumOperands() != 2)
    return {};
  Operation *largest = producerOf(shifted->getOperand(1));
  if (!largest || pinRoleOf(largest) != PinRole::Largest ||
      origin(largest->getOperand(0)) != origin(shifted->getOperand(0)))
    return {};
  return shifted->getOperand(0);
}

void mlir::mp::detectAttentionScores(PinContext &context) {
  if (!guards(PinRule::AttentionScores, context.half))
    return;
  for (PinRole role : {PinRole::Probability, PinRole::Exponential})
    for (Operation *op : context.withRole(role)) {
      Value scores = scoresOf(op);
      MatmulOp product = scores ? scoresBehind(scores) : nullptr;
      if (!product || !isOfActivations(product))
        continue;
      context.pin(product, PinRule::AttentionScores, PinWhere::result,
                  depthText(product) + " of queries and keys add up; beyond " +
                      numberText(context.half.largest) +
                      " a score is infinite before it is scaled");
    }
}
