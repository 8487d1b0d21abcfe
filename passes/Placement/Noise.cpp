//===- Noise.cpp - how roundings reach the results ------------------------===//

#include "passes/Placement/Noise.h"
#include "dialect/IR/ScaleRules.h"
#include "passes/Placement/Fusion.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

static bool isHalfTensor(Type type) {
  return isFloatTensor(type) &&
         isHalf(cast<RankedTensorType>(type).getElementType());
}

static OpKind kindOf(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision ? precision.getOpKind() : OpKind::Unknown;
}

/// True if the operation rounds its input, which was not rounded before.
static bool roundsToHalf(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return isHalf(cast.getTo()) && !cast.isExact();
  if (auto round = dyn_cast<RoundOp>(op))
    return isHalf(round.getFormat());
  return false;
}

/// True if the elements of `value` all have one sign, so that noise in a sum
/// of them averages away.
static bool hasOneSign(Value value) {
  Operation *op = viewedBuffer(value).getDefiningOp();
  if (!op)
    return false;
  if (scaleRuleOf(op) == ScaleRule::Square)
    return true;
  StringRef name = stripOverload(frameworkCallee(op));
  if (name == "aten.exp" || name == "aten.abs" || name == "aten.sigmoid")
    return true;
  return name == "aten.mul" && op->getNumOperands() == 2 &&
         op->getOperand(0) == op->getOperand(1);
}

/// A literal number among the arguments.
static std::optional<double> literal(Operation *op, StringRef name) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  Attribute value = args ? args.get(name) : Attribute();
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(value))
    return number.getInt();
  return std::nullopt;
}

/// What a smooth function without a unit keeps of relative noise. Gates (tanh,
/// sigmoid, erf) are flat where they are not small.
static constexpr double kGateGain = 0.25;

NoiseModel::State NoiseModel::lookUp(Value value) const {
  return states.lookup(value);
}

namespace {
/// The rule of one operation, applied to the mean squares of its operands.
struct Propagation {
  SmallVector<double, 3> gains; ///< per operand
  double square = 1;

  Propagation(Operation *op, ArrayRef<double> squares) : gains(squares.size()) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (isFloatTensor(operand.getType()))
        floats.push_back(i);
    if (floats.empty())
      return;
    if (kindOf(op) == OpKind::Reduction)
      reduce(op, squares);
    else
      apply(scaleRuleOf(op), op, squares);
    square = std::clamp(square, 0x1p-20, 0x1p20);
  }

private:
  void scaleAll(double gain) {
    for (unsigned i : floats)
      gains[i] = gain;
  }

  void reduce(Operation *op, ArrayRef<double> squares) {
    square = squares[floats.front()];
    bool averages = scaleRuleOf(op) == ScaleRule::Square ||
                    op->getNumResults() > 1 ||
                    hasOneSign(op->getOperand(floats.front()));
    scaleAll(averages ? 0 : 1);
  }

  void product(Operation *op, ArrayRef<double> squares) {
    scaleAll(1);
    for (unsigned i : floats)
      square *= squares[i];
    if (std::optional<double> factor = literal(op, "other"))
      square *= *factor * *factor;
  }

  /// Weighs terms by their mean squares.
  void sum(Operation *op, ArrayRef<double> squares) {
    double constant = literal(op, "other").value_or(0);
    square = constant * constant;
    for (unsigned i : floats)
      square += squares[i];
    for (unsigned i : floats)
      gains[i] = squares[i] / square;
  }

  void quotient(Operation *op, ArrayRef<double> squares) {
    scaleAll(1);
    double divisor = literal(op, "other").value_or(1);
    square = squares[floats.front()] / (divisor * divisor);
    if (floats.size() > 1)
      square /= squares[floats[1]];
  }

  void power(double exponent, ArrayRef<double> squares) {
    square = std::pow(squares[floats.front()], exponent);
    gains[floats.front()] = exponent * exponent;
  }

  void apply(ScaleRule rule, Operation *op, ArrayRef<double> squares) {
    switch (rule) {
    case ScaleRule::Same:
    case ScaleRule::Blend:
      return sum(op, squares);
    case ScaleRule::Product:
    case ScaleRule::ProductPlusBias:
    case ScaleRule::SumOfProduct:
      return product(op, squares);
    case ScaleRule::Quotient:
    case ScaleRule::SumOfQuotient:
      return quotient(op, squares);
    case ScaleRule::Carried:
      gains[floats.front()] = 1;
      square = squares[floats.front()];
      return;
    case ScaleRule::Inverse:
      return power(-1, squares);
    case ScaleRule::Root:
      return power(0.5, squares);
    case ScaleRule::InverseRoot:
      return power(-0.5, squares);
    case ScaleRule::Square:
      return power(2, squares);
    case ScaleRule::Power:
      return power(literal(op, "exponent").value_or(1), squares);
    case ScaleRule::Zero:
      return;
    default:
      return scaleAll(kindOf(op) == OpKind::Pointwise ? kGateGain : 1);
    }
  }

  SmallVector<unsigned, 3> floats;
};
} // namespace

void NoiseModel::forward(Operation *op) {
  SmallVector<double, 3> squares;
  for (Value operand : op->getOperands())
    squares.push_back(lookUp(operand).square);
  Propagation rule(op, squares);
  State state;
  state.square = rule.square;
  for (auto [gain, operand] : llvm::zip_equal(rule.gains, op->getOperands()))
    state.noise += gain * lookUp(operand).noise;
  KernelRole role = kernelRoleOf(op);
  bool isCall = role == KernelRole::External;
  for (Value result : op->getResults()) {
    State each = state;
    if (roundsToHalf(op) || (isCall && isHalfTensor(result.getType())))
      each.noise += 1;
    states[result] = each;
  }
  gains[op] = std::move(rule.gains);
}

void NoiseModel::backward(Operation *op) {
  double weight = 0;
  for (Value result : op->getResults())
    weight += lookUp(result).weight;
  if (weight == 0)
    return;
  for (auto [gain, operand] : llvm::zip_equal(gains[op], op->getOperands()))
    if (gain != 0)
      states[operand].weight += gain * weight;
}

NoiseModel::NoiseModel(func::FuncOp func) {
  Block &body = func.getBody().front();
  for (Operation &op : body.without_terminator())
    forward(&op);
  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    if (isFloatTensor(value.getType()))
      results.push_back(value);
  for (Value value : results) {
    State &state = states[value];
    state.weight += 1.0 / results.size();
    mean += state.noise / results.size();
  }
  for (Operation &op : llvm::reverse(body.without_terminator()))
    backward(&op);
}

double NoiseModel::priceOf(OpOperand &use) const {
  auto found = gains.find(use.getOwner());
  if (found == gains.end())
    return 0;
  double weight = 0;
  for (Value result : use.getOwner()->getResults())
    weight += lookUp(result).weight;
  return found->second[use.getOperandNumber()] * weight;
}
