//===- RandomUpdate.cpp - optimizers that nobody would write --------------===//

#include "test/unit/RandomUpdate.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {
/// What one parameter's update computes with; all of one shape.
struct Parameter {
  Value weight, first, second, gradient;
  SmallVector<Value> values;
  SmallVector<Value> masks;
};

class Generator {
public:
  Generator(MLIRContext *context, uint64_t seed)
      : builder(context), random(seed),
        elements{builder.getF32Type(), builder.getBF16Type(),
                 builder.getF16Type(), builder.getF64Type()} {}

  OwningOpRef<ModuleOp> make();

private:
  unsigned below(unsigned end) { return random() % end; }
  bool chance(unsigned percent) { return below(100) < percent; }
  Location nextLocation() {
    return nodeLocation(node++, builder.getUnknownLoc());
  }
  Type randomElement() { return elements[chance(6) ? 3 : below(3)]; }
  Value pick(ArrayRef<Value> values);
  Value pickLike(Parameter &p, Value value);
  Value number() { return numbers[below(numbers.size())]; }

  Operation *create(StringRef callee, ValueRange operands, TypeRange results,
                    const Twine &args);
  Value aten(StringRef callee, ValueRange operands, Type result,
             const Twine &args = "");
  Value convert(Value value, Type element);
  void addParameters(func::FuncOp func, unsigned count);
  void unscale();
  void addOperation(Parameter &p);
  void addUnary(Parameter &p);
  void addBinary(Parameter &p);
  void addTernary(Parameter &p);
  void addScaling(Parameter &p);
  void addChoice(Parameter &p);
  void addSum(Parameter &p);
  void addListOperator(Parameter &p);
  void addReturn(func::FuncOp func);

  OpBuilder builder;
  std::mt19937_64 random;
  std::array<Type, 4> elements;
  std::vector<Parameter> parameters;
  SmallVector<Value> numbers; ///< f32 of no dimension
  Value found;
  int32_t node = 0;
};
} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Recent values more often, so that chains form.
Value Generator::pick(ArrayRef<Value> values) {
  unsigned size = values.size();
  return values[chance(60) ? size - 1 - below(std::min(size, 4u))
                           : below(size)];
}

/// Another value of the type of `value`, or itself.
Value Generator::pickLike(Parameter &p, Value value) {
  SmallVector<Value> fitting = llvm::filter_to_vector(
      p.values, [&](Value v) { return v.getType() == value.getType(); });
  return fitting[below(fitting.size())];
}

Operation *Generator::create(StringRef callee, ValueRange operands,
                             TypeRange results, const Twine &args) {
  std::string text = args.str();
  DictionaryAttr dict;
  if (!text.empty())
    dict = cast<DictionaryAttr>(
        parseAttribute("{" + text + "}", builder.getContext()));
  return AtenOp::create(builder, nextLocation(), results, callee, operands,
                        dict, /*effects=*/false);
}

Value Generator::aten(StringRef callee, ValueRange operands, Type result,
                      const Twine &args) {
  return create(callee, operands, result, args)->getResult(0);
}

Value Generator::convert(Value value, Type element) {
  static const CastOrigin origins[] = {CastOrigin::user, CastOrigin::autocast,
                                       CastOrigin::promotion};
  return CastOp::create(builder, nextLocation(), value, element,
                        origins[below(3)]);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void Generator::addUnary(Parameter &p) {
  static const char *const names[] = {"neg",  "abs",  "relu", "sqrt",
                                      "tanh", "sign", "exp",  "reciprocal"};
  Value value = pick(p.values);
  std::string name = names[below(std::size(names))];
  p.values.push_back(aten("aten." + name + ".default", value, value.getType()));
}

void Generator::addBinary(Parameter &p) {
  Value a = pick(p.values), b = pickLike(p, a);
  Type type = a.getType();
  switch (below(6)) {
  case 0:
    p.values.push_back(aten("aten.add.Tensor", {a, b}, type,
                            chance(50) ? "alpha = -0.1 : f64" : ""));
    return;
  case 1:
    p.values.push_back(aten("aten.sub.Tensor", {a, b}, type));
    return;
  case 2:
    p.values.push_back(aten("aten.mul.Tensor", {a, b}, type));
    return;
  case 3:
    p.values.push_back(aten("aten.div.Tensor", {a, b}, type));
    return;
  case 4:
    p.values.push_back(aten("aten.maximum.default", {a, b}, type));
    return;
  default:
    p.values.push_back(aten("aten.mul.Scalar", a, type, "other = 0.9 : f64"));
  }
}

void Generator::addTernary(Parameter &p) {
  Value a = pick(p.values), b = pickLike(p, a), c = pickLike(p, a);
  Type type = a.getType();
  switch (below(4)) {
  case 0:
    p.values.push_back(
        aten("aten.addcmul.default", {a, b, c}, type, "value = 0.1 : f64"));
    return;
  case 1:
    p.values.push_back(
        aten("aten.addcdiv.default", {a, b, c}, type, "value = -0.001 : f64"));
    return;
  case 2:
    p.values.push_back(
        aten("aten.lerp.Scalar", {a, b}, type, "weight = 0.1 : f64"));
    return;
  default:
    p.values.push_back(
        aten("aten.clamp_min.default", a, type, "min = 1.0e-8 : f64"));
  }
}

/// By a loss scale, a clip factor or a learning rate.
void Generator::addScaling(Parameter &p) {
  Value value = pick(p.values);
  StringRef callee = chance(80) ? "aten.mul.Tensor" : "aten.div.Tensor";
  p.values.push_back(aten(callee, {value, number()}, value.getType()));
}

void Generator::addChoice(Parameter &p) {
  Value a = pick(p.values), b = pickLike(p, a);
  RankedTensorType mask = typeOf(a).clone(builder.getI1Type());
  if (p.masks.empty() || chance(30))
    p.masks.push_back(
        chance(50) ? aten("aten.isfinite.default", a, mask)
                   : aten("aten.ge.Scalar", a, mask, "other = 0.0 : f64"));
  p.values.push_back(
      aten("aten.where.self", {pick(p.masks), a, b}, a.getType()));
}

/// A number from all elements, as the clip factor is.
void Generator::addSum(Parameter &p) {
  auto type = RankedTensorType::get({}, builder.getF32Type());
  Value value = pick(p.values);
  if (typeOf(value).getElementType() != builder.getF32Type())
    value = convert(value, builder.getF32Type());
  Value sum = aten("aten.linalg_vector_norm.default", value, type);
  numbers.push_back(aten("aten.reciprocal.default", sum, type));
}

void Generator::addListOperator(Parameter &p) {
  SmallVector<Value> list = {pick(p.values), pick(p.values)};
  SmallVector<Type> types = {list[0].getType(), list[1].getType()};
  Operation *op = nullptr;
  if (chance(40)) {
    op = create("aten._foreach_mul.ScalarList", list, types,
                "self = [\"%0\", \"%1\"], scalars = [0.9 : f64, 0.99 : f64]");
  } else if (chance(50)) {
    op = create("aten._foreach_sqrt.default", list, types,
                "self = [\"%0\", \"%1\"]");
  } else {
    list.append({pickLike(p, list[0]), pickLike(p, list[1])});
    op = create("aten._foreach_add.List", list, types,
                "self = [\"%0\", \"%1\"], other = [\"%2\", \"%3\"], "
                "alpha = 0.5 : f64");
  }
  p.values.append(op->result_begin(), op->result_end());
}

void Generator::addOperation(Parameter &p) {
  switch (below(10)) {
  case 0:
  case 1:
    return addUnary(p);
  case 2:
  case 3:
    return addBinary(p);
  case 4:
    return addTernary(p);
  case 5:
    return addScaling(p);
  case 6:
    return addChoice(p);
  case 7:
    return addListOperator(p);
  case 8:
    return chance(30) ? addSum(p) : addScaling(p);
  default:
    p.values.push_back(convert(pick(p.values), randomElement()));
  }
}

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

void Generator::addParameters(func::FuncOp func, unsigned count) {
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToStart(body);
  numbers = {func.getArgument(0), func.getArgument(1)};
  found = func.getArgument(2);
  for (unsigned i = 0; i != count; ++i) {
    auto argument = [&](unsigned k) { return func.getArgument(3 + 4 * i + k); };
    Parameter p{argument(0), argument(1), argument(2), argument(3), {}, {}};
    p.values = {p.weight, p.first, p.second, p.gradient};
    parameters.push_back(p);
  }
}

/// All gradients, by the operator of PyTorch's scaler.
void Generator::unscale() {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  std::string list;
  for (auto [i, p] : llvm::enumerate(parameters)) {
    operands.push_back(p.gradient);
    types.push_back(p.gradient.getType());
    list += (i ? ", \"%" : "\"%") + std::to_string(i) + "\"";
  }
  types.push_back(found.getType());
  operands.append({found, numbers[0]});
  size_t count = parameters.size();
  Operation *op = create(
      "aten._amp_foreach_non_finite_check_and_unscale.default", operands, types,
      "self = [" + list + "], found_inf = \"%" + std::to_string(count) +
          "\", inv_scale = \"%" + std::to_string(count + 1) + "\"");
  for (auto [i, p] : llvm::enumerate(parameters))
    p.values.back() = op->getResult(i);
  found = op->getResult(count);
}

void Generator::addReturn(func::FuncOp func) {
  SmallVector<Value> results = {found};
  for (Parameter &p : parameters) {
    for (Value old : {p.weight, p.first, p.second}) {
      Value next = pick(p.values);
      if (next.getType() != old.getType())
        next = convert(next, typeOf(old).getElementType());
      p.values.push_back(next);
      results.push_back(next);
    }
    if (chance(50)) // the copy that the next forward reads
      results.push_back(convert(results[results.size() - 3], elements[1]));
    if (chance(30))
      results.push_back(pick(p.values));
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(),
                                               TypeRange(ValueRange(results))));
}

OwningOpRef<ModuleOp> Generator::make() {
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto number = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<Type> inputs(3, number);
  unsigned count = 1 + below(2);
  for (unsigned i = 0; i != count; ++i) {
    SmallVector<int64_t> shape =
        i ? SmallVector<int64_t>{2, 2} : SmallVector<int64_t>{4};
    for (unsigned k = 0; k != 4; ++k)
      inputs.push_back(RankedTensorType::get(
          shape, chance(60) ? builder.getF32Type() : randomElement()));
  }
  auto func = func::FuncOp::create(builder, loc, "f",
                                   builder.getFunctionType(inputs, {}));
  addParameters(func, count);
  if (chance(60))
    unscale();
  for (unsigned i = 0, size = 4 + below(20); i != size; ++i)
    addOperation(parameters[below(parameters.size())]);
  addReturn(func);
  return module;
}

OwningOpRef<ModuleOp> mlir::mp::makeRandomUpdate(MLIRContext *context,
                                                 uint64_t seed) {
  context->loadDialect<MPDialect, func::FuncDialect>();
  return Generator(context, seed).make();
}
