//===- LossScaleTypes.cpp - the unit of each value in a step --------------===//

#include "passes/Update/LossScaleTypes.h"
#include "dialect/IR/Arguments.h"
#include "dialect/IR/ListOperators.h"
#include "dialect/IR/ScaleRules.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::mp;

static SmallVector<Value> floatTensors(ValueRange values) {
  return llvm::filter_to_vector(
      values, [](Value value) { return isFloatTensor(value.getType()); });
}

static StringRef roleOf(BlockArgument argument, func::FuncOp func) {
  auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                MPDialect::kRoleAttrName);
  return role ? role.getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

LossScaleTypes::LossScaleTypes(func::FuncOp func) {
  Block &body = func.getBody().front();
  for (BlockArgument argument : body.getArguments())
    visitArgument(argument, func);
  visitScales(func);
  for (Operation &op : body.without_terminator())
    visit(&op);
}

/// `value` is the `power`-th power of a loss scale of its own.
void LossScaleTypes::define(Value value, int64_t power) {
  defineAs(units.newScale().powers.front().first, value, power);
}

void LossScaleTypes::defineAs(unsigned symbol, Value value, int64_t power) {
  scaleValues.try_emplace(symbol, value);
  unitOfValue[value] = Unit{{{symbol, Fraction(power, 1)}}};
  pure.insert(value);
}

static int64_t scalePowerOf(BlockArgument argument, func::FuncOp func) {
  auto power = func.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), MPDialect::kLossScaleAttrName);
  return power && isFloatTensor(argument.getType()) ? power.getInt() : 0;
}

/// Whose inverse an argument is, nothing in the graph says. One scale and one
/// inverse belong together; of more, an inverse has a unit that is not known.
void LossScaleTypes::visitScales(func::FuncOp func) {
  SmallVector<BlockArgument> scales, inverses;
  for (BlockArgument argument : func.getArguments()) {
    int64_t power = scalePowerOf(argument, func);
    if (power != 0)
      (power > 0 ? scales : inverses).push_back(argument);
  }
  for (BlockArgument scale : scales)
    define(scale, scalePowerOf(scale, func));
  bool isPair = scales.size() == 1 && inverses.size() == 1;
  for (BlockArgument inverse : inverses) {
    int64_t power = scalePowerOf(inverse, func);
    if (isPair)
      defineAs(unitOf(scales.front()).powers.front().first, inverse, power);
    else if (scales.empty())
      define(inverse, power);
    else
      pure.insert(inverse);
  }
}

void LossScaleTypes::visitArgument(BlockArgument argument, func::FuncOp func) {
  if (!isFloatTensor(argument.getType()))
    return;
  StringRef role = roleOf(argument, func);
  bool isPlain = role == "parameter" || role == "buffer";
  unitOfValue[argument] = isPlain ? Unit() : units.newUnknown();
}

void LossScaleTypes::setResults(Operation *op, const Unit &unit) {
  for (Value result : op->getResults())
    if (isFloatTensor(result.getType()))
      unitOfValue[result] = unit;
}

Unit LossScaleTypes::unitOf(Value value) const {
  auto it = unitOfValue.find(value);
  return it == unitOfValue.end() ? Unit() : units.resolve(it->second);
}

Unit LossScaleTypes::product(ArrayRef<Value> values) const {
  Unit unit;
  for (Value value : values)
    unit = multiply(unit, unitOf(value));
  return unit;
}

//===----------------------------------------------------------------------===//
// Equations
//===----------------------------------------------------------------------===//

/// `value` must have the unit that `other` has, or `unit` stands for.
void LossScaleTypes::require(Operation *op, Value value, Value other,
                             const Unit &unit, bool isLiteral) {
  Unit own = unitOf(value);
  if (!units.unify(own, unit))
    conflicts.push_back(
        {op, value, own, other, units.resolve(unit), isLiteral});
}

void LossScaleTypes::requireNone(Operation *op, ArrayRef<Value> values) {
  for (Value value : values)
    require(op, value, Value(), Unit());
}

/// True for a number that is the same at any scale: zero, infinity, NaN.
static bool isScaleFree(Attribute attr) {
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValue().isZero() || !number.getValue().isFinite();
  auto number = dyn_cast<IntegerAttr>(attr);
  return !number || number.getValue().isZero();
}

/// A literal that is added to `value`, or compared with it, has no unit.
void LossScaleTypes::requireLiterals(Operation *op, Value value) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  if (!args)
    return;
  for (StringRef name : {"other", "min", "max", "value", "self"}) {
    Attribute literal = args.get(name);
    if (isa_and_present<FloatAttr, IntegerAttr>(literal) &&
        !isScaleFree(literal))
      return require(op, value, Value(), Unit(), /*isLiteral=*/true);
  }
}

static Fraction literalPower(Operation *op, bool &isKnown) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  Attribute exponent = args ? args.get("exponent") : Attribute();
  isKnown = true;
  if (auto number = dyn_cast_if_present<IntegerAttr>(exponent))
    return Fraction(number.getInt(), 1);
  if (auto number = dyn_cast_if_present<FloatAttr>(exponent)) {
    double twice = 2 * number.getValueAsDouble();
    if (twice == std::floor(twice) && std::abs(twice) < 1000)
      return Fraction(int64_t(twice), 2);
  }
  isKnown = false;
  return Fraction(0, 1);
}

void LossScaleTypes::visitRow(Operation *op, ArrayRef<Value> values) {
  Value first = values.front();
  Unit unit = unitOf(first);
  auto power = [&](const Fraction &exponent) {
    return multiply({}, unit, exponent);
  };
  auto requireSum = [&](const Fraction &exponent) {
    if (values.size() != 3)
      return setResults(op, units.newUnknown());
    Unit term = multiply(unitOf(values[1]), unitOf(values[2]), exponent);
    require(op, first, values[1], term);
    setResults(op, unit);
  };
  switch (scaleRuleOf(op)) {
  case ScaleRule::Same:
    for (Value value : values.drop_front())
      require(op, value, first, unit);
    requireLiterals(op, first);
    return setResults(op, unit);
  case ScaleRule::Blend:
    if (values.size() > 1)
      require(op, values[1], first, unit);
    requireNone(op, values.drop_front(std::min<size_t>(2, values.size())));
    return setResults(op, unit);
  case ScaleRule::Carried:
    requireNone(op, values.drop_front());
    return setResults(op, unit);
  case ScaleRule::Product:
    return setResults(op, product(values));
  case ScaleRule::ProductPlusBias: {
    Unit result = product(values.take_front(2));
    if (values.size() > 2)
      require(op, values[2], first, result);
    return setResults(op, result);
  }
  case ScaleRule::SumOfProduct:
    return requireSum(Fraction(1, 1));
  case ScaleRule::SumOfQuotient:
    return requireSum(Fraction(-1, 1));
  case ScaleRule::Quotient:
    return setResults(op, values.size() == 2 ? multiply(unit, unitOf(values[1]),
                                                        Fraction(-1, 1))
                                             : unit);
  case ScaleRule::Inverse:
    return setResults(op, power(Fraction(-1, 1)));
  case ScaleRule::Root:
    return setResults(op, power(Fraction(1, 2)));
  case ScaleRule::InverseRoot:
    return setResults(op, power(Fraction(-1, 2)));
  case ScaleRule::Square:
    return setResults(op, power(Fraction(2, 1)));
  case ScaleRule::Power: {
    bool isKnown;
    Fraction exponent = literalPower(op, isKnown);
    if (isKnown && values.size() == 1)
      return setResults(op, power(exponent));
    requireNone(op, values);
    return setResults(op, Unit());
  }
  case ScaleRule::None:
    requireNone(op, values);
    return setResults(op, Unit());
  case ScaleRule::Free:
    return setResults(op, Unit());
  case ScaleRule::Unknown:
  case ScaleRule::Zero:
  case ScaleRule::Update:
  case ScaleRule::NewScale:
    llvm_unreachable("their results do not depend on the operands");
  }
}

/// The operand that an argument names; null if there is none.
static Value argumentOf(Operation *op, StringRef name) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  return args ? operandOf(op, args.get(name)) : Value();
}

/// PyTorch's fused updates divide each gradient by `grad_scale`.
void LossScaleTypes::visitUpdate(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  auto grads = args ? args.getAs<ArrayAttr>("grads") : ArrayAttr();
  Value scale = argumentOf(op, "grad_scale");
  llvm::DenseSet<Value> scaled;
  for (Attribute attr : grads ? grads.getValue() : ArrayRef<Attribute>())
    if (Value grad = operandOf(op, attr)) {
      scaled.insert(grad);
      Unit unscaled = unitOf(grad);
      if (scale)
        unscaled = multiply(unscaled, unitOf(scale), Fraction(-1, 1));
      if (!units.unify(unscaled, Unit()))
        conflicts.push_back(
            {op, grad, units.resolve(unscaled), Value(), Unit()});
    }
  for (Value value : floatTensors(op->getOperands()))
    if (value != scale && !scaled.contains(value))
      require(op, value, Value(), Unit());
}

void LossScaleTypes::visitOperator(Operation *op) {
  SmallVector<Value> values = floatTensors(frameworkOperands(op));
  switch (scaleRuleOf(op)) {
  case ScaleRule::Update:
    visitUpdate(op);
    return setResults(op, Unit());
  case ScaleRule::NewScale: // (scale, ..., flag)
    requireNone(op, ArrayRef(values).drop_front());
    return define(op->getResult(0), 1);
  case ScaleRule::Unknown:
  case ScaleRule::Zero:
    for (Value result : floatTensors(op->getResults()))
      unitOfValue[result] = units.newUnknown();
    return;
  default:
    if (!values.empty())
      return visitRow(op, values);
    return setResults(op, Unit());
  }
}

void LossScaleTypes::visit(Operation *op) {
  visitOperator(op);
  auto power = op->getAttrOfType<IntegerAttr>(MPDialect::kLossScaleAttrName);
  if (power && power.getInt() != 0 && op->getNumResults() > 0 &&
      isFloatTensor(op->getResult(0).getType()))
    return define(op->getResult(0), power.getInt());
  if (computesPureScale(op))
    pure.insert(op->getResult(0));
}

bool LossScaleTypes::computesPureScale(Operation *op) const {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      scaleRuleOf(op) == ScaleRule::Unknown ||
      !isFloatTensor(op->getResult(0).getType()))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return pure.contains(operand); });
}

//===----------------------------------------------------------------------===//
// Where a unit comes from
//===----------------------------------------------------------------------===//

SmallVector<Operation *> LossScaleTypes::scalingsOf(Value value) const {
  SmallVector<Operation *> found;
  llvm::SetVector<Value> pending;
  pending.insert(value);
  for (size_t i = 0; i != pending.size(); ++i) {
    Operation *op = pending[i].getDefiningOp();
    if (!op)
      continue;
    SmallVector<Value> values = floatTensors(op->getOperands());
    bool scales =
        values.size() == 2 && llvm::count_if(values, [&](Value operand) {
                                return isPureScale(operand);
                              }) == 1;
    if (scales)
      found.push_back(op);
    for (Value operand : values)
      if (!isPureScale(operand))
        pending.insert(operand);
  }
  return found;
}

std::string mlir::mp::describeScale(Value scale) {
  auto argument = dyn_cast<BlockArgument>(scale);
  if (!argument)
    return "that of an operation";
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = func ? func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       MPDialect::kNameAttrName)
                   : StringAttr();
  return name ? name.str() : "%arg" + std::to_string(argument.getArgNumber());
}

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

/// The value at the other end of conversions, copies and reciprocals; `power`
/// changes its sign at each reciprocal.
static Value rootOf(Value value, int64_t &power) {
  while (Operation *op = value.getDefiningOp()) {
    SmallVector<Value> values = floatTensors(op->getOperands());
    ScaleRule rule = scaleRuleOf(op);
    if (values.size() != 1 ||
        (rule != ScaleRule::Same && rule != ScaleRule::Inverse))
      break;
    if (rule == ScaleRule::Inverse)
      power = -power;
    value = values.front();
  }
  return value;
}

static void mark(func::FuncOp func, Value value, int64_t power) {
  Value root = rootOf(value, power);
  auto attr = IntegerAttr::get(IntegerType::get(func.getContext(), 64), power);
  StringRef name = MPDialect::kLossScaleAttrName;
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    if (!func.getArgAttr(argument.getArgNumber(), name))
      func.setArgAttr(argument.getArgNumber(), name, attr);
  } else if (!root.getDefiningOp()->hasAttr(name) &&
             root == root.getDefiningOp()->getResult(0)) {
    root.getDefiningOp()->setAttr(name, attr);
  }
}

void mlir::mp::markLossScales(func::FuncOp func) {
  for (auto op : func.getOps<AtenOp>()) {
    StringRef name = stripOverload(op.getCallee());
    // (current_scale, growth_tracker, found_inf, ...)
    if (name == "aten._amp_update_scale" && op->getNumOperands() > 0)
      mark(func, op->getOperand(0), 1);
    if (scaleRuleOf(op) == ScaleRule::Update)
      if (Value scale = argumentOf(op, "grad_scale"))
        mark(func, scale, 1);
    // (scaled gradients..., found_inf, inverse scale)
    if (name == "aten._amp_foreach_non_finite_check_and_unscale" &&
        op->getNumOperands() > 1)
      mark(func, op->getOperands().back(), -1);
  }
}
