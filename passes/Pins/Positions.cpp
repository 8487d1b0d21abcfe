//===- Positions.cpp - integers that reach a cosine or sine ---------------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

static bool isCount(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<TensorType>(type) && element.isInteger() && !element.isInteger(1);
}

static bool isFloat(Type type) {
  return isa<TensorType>(type) && isa<FloatType>(getElementTypeOrSelf(type));
}

namespace {
/// Which float values are computed from positions, and from which.
class PositionFinder {
public:
  explicit PositionFinder(PinContext &context) : context(context) {}

  void run() {
    ArrayRef<Operation *> angles = context.withRole(PinRole::Angle);
    if (angles.empty())
      return;
    for (Operation &op : context.operations())
      propagate(&op);
    for (Operation *op : angles)
      if (sources.contains(op->getOperand(0)))
        pinFrom(op);
  }

private:
  /// The positions that `op` converts to floats or counts in floats.
  static Value positionsIn(Operation *op) {
    if (pinRoleOf(op) == PinRole::Counting)
      return op->getResult(0);
    bool converts = isa<CastOp>(op) || opKindOf(op) == OpKind::Pointwise;
    if (converts)
      for (Value operand : op->getOperands())
        if (isCount(operand.getType()))
          return operand;
    return {};
  }

  static bool handsOn(Operation *op) {
    switch (opKindOf(op)) {
    case OpKind::View:
    case OpKind::Reshape:
    case OpKind::Movement:
    case OpKind::Sign:
    case OpKind::Monotone:
    case OpKind::Matmul:
      return true;
    case OpKind::Pointwise:
      return pinRoleOf(op) != PinRole::Angle;
    default:
      return false;
    }
  }

  void propagate(Operation *op) {
    if (op->getNumResults() == 0 || !isFloat(op->getResult(0).getType()))
      return;
    Value source = positionsIn(op);
    if (!source && handsOn(op))
      for (Value operand : op->getOperands())
        if (Value known = sources.lookup(operand)) {
          source = known;
          break;
        }
    if (source)
      sources[op->getResult(0)] = source;
  }

  void pinFrom(Operation *angle) {
    std::string why = reason(sources.lookup(angle->getOperand(0)), angle);
    context.pin(angle, PinRule::Positions, PinWhere::operands, why);
    SmallVector<Value> pending = {angle->getOperand(0)};
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val().getDefiningOp();
      if (!op || !visited.insert(op).second)
        continue;
      // A product of narrowed positions would be as wrong as a narrowed one.
      if (!isTransparent(op))
        context.pin(op, PinRule::Positions, PinWhere::both, why);
      for (Value operand : op->getOperands())
        if (sources.contains(operand))
          pending.push_back(operand);
    }
  }

  std::string reason(Value source, Operation *angle) const {
    double largest = context.intervals.of(source).magnitude();
    std::string to = stripOverload(frameworkCallee(angle)).str();
    const HalfFormat &half = context.half;
    // More than that is what the integer type holds, not what the graph says.
    bool isKnown = largest >= 1 && largest < 0x1p30;
    if (!isKnown)
      return "integers that reach " + to + "; " + half.name.str() +
             " keeps them apart up to " + numberText(half.exactIntegers());
    return "positions up to " + numberText(largest) + " reach " + to + "; " +
           stepText(half, largest);
  }

  PinContext &context;
  llvm::DenseMap<Value, Value> sources;
  llvm::DenseSet<Operation *> visited;
};
} // namespace

void mlir::mp::detectPositions(PinContext &context) {
  PositionFinder(context).run();
}
