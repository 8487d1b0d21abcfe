//===- Choices.cpp - values that decide an index or a truth value ---------===//

#include "passes/CastReasons.h"
#include "passes/Pins/PinContext.h"
#include "llvm/ADT/PointerIntPair.h"

using namespace mlir;
using namespace mlir::mp;

/// A sum of two streams, where what decides begins: not a bias.
static bool isJoin(Operation *op) {
  if (pinRoleOf(op) != PinRole::Add || op->getNumOperands() != 2)
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Value from = origin(operand);
    return operand.getType() == op->getResult(0).getType() &&
           !isParameter(from) && !constantOf(from);
  });
}

static bool isRandom(Value value) {
  Operation *op = producerOf(value);
  return op && opKindOf(op) == OpKind::Random;
}

/// True for comparisons of two computed floats. A literal does not move when
/// the other side is rounded, and a rounding keeps the order.
static bool comparesComputed(Operation *op) {
  return op->getNumOperands() == 2 &&
         llvm::all_of(op->getOperands(), [](Value operand) {
           return isPinnable(operand.getType()) && !constantOf(operand) &&
                  !isRandom(operand);
         });
}

/// The number of products in each sum of `op`, or 0.
static int64_t depthOf(Operation *op) {
  auto matmul = dyn_cast<MatmulOp>(op);
  if (!matmul)
    return 0;
  auto type = cast<RankedTensorType>(matmul.getLhs().getType());
  int64_t depth = type.getShape().back();
  return ShapedType::isDynamic(depth) ? 0 : depth;
}

namespace {
/// Goes from what decides back to the product that computes it and on to the
/// stream that this one reads.
class ChoiceWalk {
public:
  explicit ChoiceWalk(PinContext &context) : context(context) {}

  void from(Operation *op) {
    decision = stripOverload(frameworkCallee(op)).str();
    context.pin(op, PinRule::DiscreteChoice, PinWhere::operands,
                "decides by order; " + stepText(context.half, 1));
    for (Value operand : op->getOperands())
      if (isPinnable(operand.getType()))
        pending.push_back({operand, false});
    while (!pending.empty()) {
      auto [value, isBehind] = pending.pop_back_val();
      visit(value, isBehind);
    }
  }

private:
  void visit(Value value, bool isBehind) {
    Operation *op = value.getDefiningOp();
    if (!op || !visited.insert({op, isBehind}).second)
      return;
    OpKind kind = opKindOf(op);
    if (isTransparent(op))
      return follow(op, isBehind);
    if (isExternalKind(kind))
      return isBehind ? void() : visitProduct(op, kind);
    if (isRoundingObserverKind(kind) || kind == OpKind::Creation ||
        kind == OpKind::Random)
      return;
    // Behind the product a half stream is what it is; in front of it even a
    // half score should not have been rounded.
    if (!isBehind || getElementTypeOrSelf(value.getType()).isF32())
      context.pinResult(value, PinRule::DiscreteChoice,
                        "decides " + decision + "; " +
                            stepText(context.half, 1));
    if (!isJoin(op))
      follow(op, isBehind);
  }

  void visitProduct(Operation *op, OpKind kind) {
    if (kind != OpKind::Matmul)
      return context.pin(op, PinRule::DiscreteChoice, PinWhere::result,
                         "decides " + decision + "; " +
                             stepText(context.half, 1));
    int64_t depth = depthOf(op);
    std::string sums =
        depth ? "sums of " + std::to_string(depth) + " products" : "sums";
    context.pin(op, PinRule::Router, PinWhere::result,
                sums + " decide " + decision +
                    "; they are f32 already, operands may be half, and " +
                    stepText(context.half, 10));
    follow(op, /*isBehind=*/true);
  }

  void follow(Operation *op, bool isBehind) {
    for (Value operand : op->getOperands())
      if (isPinnable(operand.getType()) && !isParameter(origin(operand)))
        pending.push_back({operand, isBehind});
  }

  PinContext &context;
  std::string decision;
  SmallVector<std::pair<Value, bool>> pending;
  llvm::DenseSet<llvm::PointerIntPair<Operation *, 1, bool>> visited;
};
} // namespace

void mlir::mp::detectChoices(PinContext &context) {
  ChoiceWalk walk(context);
  for (Operation *op : context.withRole(PinRole::Choice))
    walk.from(op);
  for (Operation *op : context.withRole(PinRole::Comparison))
    if (comparesComputed(op))
      walk.from(op);
}
