//===- Noise.cpp - how roundings reach the results ------------------------===//

#include "passes/Placement/Noise.h"
#include "dialect/IR/ScaleRules.h"
#include "passes/Pins/PinMatch.h"
#include "passes/Placement/Fusion.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

static bool isHalfTensor(Type type) {
  return isFloatTensor(type) &&
         isHalf(cast<RankedTensorType>(type).getElementType());
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
  ScaleRule rule = scaleRuleOf(op);
  if (rule == ScaleRule::Square ||
      (rule == ScaleRule::Power &&
       std::fmod(numberArg(op, "exponent").value_or(1), 2) == 0))
    return true;
  StringRef name = stripOverload(frameworkCallee(op));
  if (name == "aten.exp" || name == "aten.abs" || name == "aten.sigmoid")
    return true;
  return name == "aten.mul" && op->getNumOperands() == 2 &&
         op->getOperand(0) == op->getOperand(1);
}

/// What a smooth function without a unit keeps of relative noise. Gates (tanh,
/// sigmoid, erf) are flat where they are not small.
static constexpr double kGateGain = 0.25;
static constexpr double kGateSquare = 0.5;

/// Attention averages values; what it keeps of their mean square.
static constexpr double kAttentionSquare = 0.125;

/// Mean square of a parameter with two dimensions or more: a deviation of 0.02,
/// which transformers start from. Vectors scale, and are of size 1.
static constexpr double kMatrixSquare = 4e-4;

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
    OpKind kind = opKindOf(op);
    if (kind == OpKind::Reduction)
      reduce(op, squares);
    else if (kind == OpKind::Matmul)
      contract(op, squares);
    else if (kind == OpKind::Convolution)
      carry(squares, 1);
    else if (kind == OpKind::Attention)
      attend(squares);
    else if (isDataMovementKind(kind))
      mix(squares);
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
    bool isOneSign = hasOneSign(op->getOperand(floats.front()));
    bool averages = scaleRuleOf(op) == ScaleRule::Square ||
                    op->getNumResults() > 1 || isOneSign;
    scaleAll(averages ? 0 : 1);
    if (stripOverload(frameworkCallee(op)) != "aten.sum")
      return;
    double terms =
        double(estimatedElements(op->getOperand(floats.front()).getType())) /
        std::max<int64_t>(1, estimatedElements(op->getResult(0).getType()));
    square *= isOneSign ? terms * terms : terms;
  }

  /// A contraction of terms of either sign.
  void contract(Operation *op, ArrayRef<double> squares) {
    product(op, squares);
    if (floats.size() > 2) // a bias
      square /= squares[floats.back()];
    if (auto matmul = dyn_cast<MatmulOp>(op)) {
      auto lhs = cast<RankedTensorType>(matmul.getLhs().getType());
      int64_t depth = lhs.getShape().back();
      square *= ShapedType::isDynamic(depth) ? kDynamicSize : depth;
    }
  }

  /// Noise of all operands, size of the first.
  void carry(ArrayRef<double> squares, double factor) {
    scaleAll(1);
    square = squares[floats.front()] * factor;
  }

  /// Forward reads queries, keys and values; backward a gradient first.
  void attend(ArrayRef<double> squares) {
    bool isForward = floats.size() < 5;
    carry(squares, isForward ? kAttentionSquare : 1);
    scaleAll(isForward ? 1.0 / floats.size() : kGateGain);
    if (!isForward)
      gains[floats.front()] = 1;
  }

  /// Elements of one operand or the other.
  void mix(ArrayRef<double> squares) {
    sum(nullptr, squares);
    square /= floats.size();
  }

  void product(Operation *op, ArrayRef<double> squares) {
    scaleAll(1);
    for (unsigned i : floats)
      square *= squares[i];
    if (std::optional<double> factor = numberArg(op, "other"))
      square *= *factor * *factor;
  }

  /// Weighs terms by their mean squares.
  void sum(Operation *op, ArrayRef<double> squares) {
    double constant = op ? numberArg(op, "other").value_or(0) : 0;
    square = constant * constant;
    for (unsigned i : floats)
      square += squares[i];
    for (unsigned i : floats)
      gains[i] = squares[i] / square;
  }

  void quotient(Operation *op, ArrayRef<double> squares) {
    scaleAll(1);
    double divisor = numberArg(op, "other").value_or(1);
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
      return power(numberArg(op, "exponent").value_or(1), squares);
    case ScaleRule::Zero:
      return;
    default: {
      bool isGate = opKindOf(op) == OpKind::Pointwise;
      square = isGate ? kGateSquare : squares[floats.front()];
      return scaleAll(isGate ? kGateGain : 1);
    }
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

/// True for an argument that is the gradient of a result.
static bool isTangent(func::FuncOp func, BlockArgument arg) {
  auto role = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                MPDialect::kRoleAttrName);
  return role && role.getValue() == "tangent";
}

NoiseModel::NoiseModel(func::FuncOp func) {
  Block &body = func.getBody().front();
  for (BlockArgument arg : body.getArguments())
    if (isFloatTensor(arg.getType()) && !isTangent(func, arg) &&
        cast<RankedTensorType>(arg.getType()).getRank() > 1)
      states[arg].square = kMatrixSquare;
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
