//===- RandomGraph.cpp - graphs that nobody would write -------------------===//

#include "test/unit/RandomGraph.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {
class Generator {
public:
  Generator(MLIRContext *context, uint64_t seed, bool isTraced,
            bool hasProducts)
      : builder(context), random(seed), isTraced(isTraced),
        hasProducts(hasProducts),
        elements{builder.getF32Type(), builder.getBF16Type(),
                 builder.getF16Type(), builder.getF64Type()} {}

  OwningOpRef<ModuleOp> make();

private:
  unsigned below(unsigned end) { return random() % end; }
  bool chance(unsigned percent) { return below(100) < percent; }

  Location nextLocation() {
    return nodeLocation(node++, builder.getUnknownLoc());
  }
  void keep(Operation *op);
  Value anyFloat();
  Value anyOfType(Type type, Value except);
  Value anyMask(ArrayRef<int64_t> shape);
  Type randomElement();
  CastOrigin randomOrigin();

  Value aten(StringRef callee, ValueRange operands, Type result,
             const Twine &args = "");
  Value convert(Value value, Type element);
  void addOperation();
  void addConversion();
  void addRoundTrip();
  void addRounding();
  void addView();
  void addMovement();
  void addMonotone();
  void addArithmetic();
  void addReduction();
  void addObserver();
  void addMatmul();
  void addProduct();
  void addArguments(func::FuncOp func);
  void addReturn(func::FuncOp func);

  OpBuilder builder;
  std::mt19937_64 random;
  bool isTraced, hasProducts;
  std::array<Type, 4> elements;
  SmallVector<Value> floats, masks, indices;
  int32_t node = 0;
  bool inBackward = false;
};
} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

void Generator::keep(Operation *op) {
  if (inBackward)
    op->setAttr(MPDialect::kBackwardAttrName, builder.getUnitAttr());
  for (Value result : op->getResults()) {
    Type element = typeOf(result).getElementType();
    if (isa<FloatType>(element))
      floats.push_back(result);
    else if (element.isInteger(1))
      masks.push_back(result);
  }
}

/// Recent values more often, so that chains form; old ones now and then, so
/// that values have many readers and backward reads forward.
Value Generator::anyFloat() {
  unsigned size = floats.size();
  if (chance(60))
    return floats[size - 1 - below(std::min(size, 4u))];
  return floats[below(size)];
}

Value Generator::anyOfType(Type type, Value otherwise) {
  SmallVector<Value> fitting;
  for (Value value : floats)
    if (value.getType() == type)
      fitting.push_back(value);
  return fitting.empty() ? otherwise : fitting[below(fitting.size())];
}

Value Generator::anyMask(ArrayRef<int64_t> shape) {
  for (Value mask : llvm::reverse(masks))
    if (typeOf(mask).getShape() == shape)
      return mask;
  return {};
}

Type Generator::randomElement() { return elements[chance(8) ? 3 : below(3)]; }

CastOrigin Generator::randomOrigin() {
  static const CastOrigin origins[] = {
      CastOrigin::autocast, CastOrigin::autocast, CastOrigin::user,
      CastOrigin::promotion, CastOrigin::decomposition};
  return origins[below(std::size(origins))];
}

Value Generator::aten(StringRef callee, ValueRange operands, Type result,
                      const Twine &args) {
  std::string text = args.str();
  DictionaryAttr dict;
  if (!text.empty())
    dict = cast<DictionaryAttr>(
        parseAttribute("{" + text + "}", builder.getContext()));
  auto op = AtenOp::create(builder, nextLocation(), TypeRange(result), callee,
                           operands, dict, /*effects=*/false);
  keep(op);
  return op->getResult(0);
}

Value Generator::convert(Value value, Type element) {
  auto cast =
      CastOp::create(builder, nextLocation(), value, element, randomOrigin());
  keep(cast);
  return cast.getOutput();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void Generator::addConversion() { convert(anyFloat(), randomElement()); }

/// To some type and back, perhaps with a movement between.
void Generator::addRoundTrip() {
  Value value = anyFloat();
  Type own = typeOf(value).getElementType();
  Value there = convert(value, randomElement());
  if (chance(30))
    there = aten("aten.flip.default", there, there.getType(), "dims = [0]");
  if (chance(30))
    there = aten("aten.relu.default", there, there.getType());
  convert(there, chance(80) ? own : randomElement());
}

/// mp-raise makes a rounding only of a user's conversions.
void Generator::addRounding() {
  Value value = anyFloat();
  Type own = typeOf(value).getElementType();
  Type format = elements[1 + below(2)];
  if (isTraced || isExactConversion(own, format) ||
      !isExactConversion(format, own))
    return addConversion();
  keep(RoundOp::create(
      builder, nextLocation(), value.getType(), value, TypeAttr::get(format),
      CastOriginAttr::get(builder.getContext(), CastOrigin::user)));
}

/// All shapes are 4, 2x2 or smaller ones that slices and reductions leave.
void Generator::addView() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  Type element = type.getElementType();
  auto shaped = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, element);
  };
  if (type.getRank() == 2 && chance(50)) {
    aten("aten.transpose.int", value,
         shaped({type.getDimSize(1), type.getDimSize(0)}),
         "dim0 = 0, dim1 = 1");
  } else if (type.getNumElements() == 4) {
    bool toMatrix = type.getRank() == 1;
    aten("aten.view.default", value, toMatrix ? shaped({2, 2}) : shaped({4}),
         toMatrix ? "size = [2, -1]" : "size = [4]");
  } else if (type.getRank() == 1 && type.getDimSize(0) == 1) {
    aten("aten.expand.default", value, shaped({4}), "size = [4]");
  } else if (type.getRank() == 1 && type.getDimSize(0) == 2) {
    aten("aten.select.int", value, shaped({}), "dim = 0, index = 1");
  } else if (type.getRank() == 0) {
    aten("aten.unsqueeze.default", value, shaped({1}), "dim = 0");
  } else {
    aten("aten.alias.default", value, type);
  }
}

void Generator::addMovement() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  Type element = type.getElementType();
  if (type.getRank() == 0)
    return addView();
  static const char *const fillers[] = {
      "0.0", "-1.5", "0.1", "-1.0e9", "70000", "1", "0xFFF0000000000000 : f64"};
  StringRef filler = fillers[below(std::size(fillers))];
  // The framework refuses a filler that overflows.
  if (element.isF16() && (filler == "70000" || filler == "-1.0e9"))
    filler = "0.1";
  Value mask = anyMask(type.getShape());
  switch (below(mask ? 7 : 5)) {
  case 0: {
    Value other = anyOfType(type, value);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] *= 2;
    Value twice = aten("aten.cat.default", {value, other},
                       RankedTensorType::get(shape, element),
                       "tensors = [\"%0\", \"%1\"], dim = 0");
    shape[0] = type.getDimSize(0);
    aten("aten.slice.Tensor", twice, RankedTensorType::get(shape, element),
         "dim = 0, start = 1, end = " + Twine(1 + shape[0]));
    return;
  }
  case 1: {
    SmallVector<int64_t> shape(type.getShape());
    Value padded = aten(
        "aten.constant_pad_nd.default", value,
        [&] {
          shape.back() += 1;
          return RankedTensorType::get(shape, element);
        }(),
        "pad = [1, 0], value = " + filler);
    aten("aten.slice.Tensor", padded, type,
         "dim = -1, start = 0, end = " + Twine(type.getShape().back()));
    return;
  }
  case 2:
    aten("aten.flip.default", value, type, "dims = [0]");
    return;
  case 3:
    aten("aten.clone.default", value, type);
    return;
  case 4: {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 2;
    // Indices are 0 to 3.
    if (type.getDimSize(0) != 4)
      return addView();
    aten("aten.index_select.default", {value, indices[0]},
         RankedTensorType::get(shape, element), "dim = 0");
    return;
  }
  case 5:
    aten("aten.masked_fill.Scalar", {value, mask}, type, "value = " + filler);
    return;
  default:
    aten("aten.where.self", {mask, value, anyOfType(type, value)}, type);
  }
}

void Generator::addMonotone() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  static const char *const unary[] = {"aten.relu.default", "aten.neg.default",
                                      "aten.abs.default"};
  if (chance(50)) {
    aten(unary[below(3)], value, type);
  } else if (chance(60) || type.getRank() == 0) {
    aten(chance(50) ? "aten.maximum.default" : "aten.minimum.default",
         {value, anyOfType(type, value)}, type);
  } else {
    aten("aten.amax.default", value,
         RankedTensorType::get(type.getShape().drop_back(),
                               type.getElementType()),
         "dim = [-1]");
  }
}

void Generator::addArithmetic() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  static const char *const binary[] = {"aten.add.Tensor", "aten.mul.Tensor",
                                       "aten.sub.Tensor"};
  static const char *const unary[] = {
      "aten.tanh.default", "aten.sigmoid.default", "aten.reciprocal.default"};
  if (chance(25)) {
    aten(unary[below(3)], value, type);
    return;
  }
  Value other = anyOfType(type, value);
  Type result = type;
  // Sometimes an operand that the operator promotes.
  Type wide = elements[0];
  if (isHalf(type.getElementType()) && type.getRank() > 0 && chance(30)) {
    Type wideType = type.clone(wide);
    Value promoting = anyOfType(wideType, Value());
    if (promoting) {
      other = promoting;
      result = wideType;
    }
  }
  aten(binary[below(3)], {value, other}, result);
}

void Generator::addReduction() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  if (type.getRank() == 0)
    return addView();
  bool softmax = chance(25);
  if (softmax)
    aten("aten._softmax.default", value, type,
         "dim = -1, half_to_float = false");
  else
    aten(chance(50) ? "aten.sum.dim_IntList" : "aten.mean.dim", value,
         RankedTensorType::get(type.getShape().drop_back(),
                               type.getElementType()),
         "dim = [-1]");
}

/// Something that can tell a rounded value from an unrounded one, and a float
/// value that depends on what it says.
void Generator::addObserver() {
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  Value other = anyOfType(type, value);
  if (chance(40)) {
    aten(chance(50) ? "aten.floor.default" : "aten.round.default", value, type);
    return;
  }
  Value mask = aten(chance(50) ? "aten.eq.Tensor" : "aten.lt.Tensor",
                    {value, other}, type.clone(builder.getI1Type()));
  Value target = anyOfType(type.clone(randomElement()), value);
  aten("aten.where.self", {mask, target, target == value ? other : target},
       target.getType());
}

void Generator::addMatmul() {
  Type element = randomElement();
  Type square = RankedTensorType::get({2, 2}, element);
  Value lhs = anyOfType(square, Value());
  if (!lhs)
    return addArithmetic();
  Value rhs = anyOfType(square, lhs);
  if (isHalf(element) && chance(50)) {
    lhs = convert(lhs, elements[0]);
    rhs = chance(30) ? lhs : convert(rhs, elements[0]);
  }
  auto product = MatmulOp::create(builder, nextLocation(), lhs.getType(), lhs,
                                  rhs, Value(), DictionaryAttr());
  keep(product);
}

/// A product that f32 arithmetic reads.
void Generator::addProduct() {
  Type element = elements[below(3)];
  Value value = anyFloat();
  RankedTensorType type = typeOf(value);
  if (type.getNumElements() != 4)
    return addArithmetic();
  if (type.getRank() == 1)
    value = aten("aten.view.default", value,
                 RankedTensorType::get({2, 2}, type.getElementType()),
                 "size = [2, -1]");
  Value lhs = convert(value, element);
  auto product = MatmulOp::create(builder, nextLocation(), lhs.getType(), lhs,
                                  anyOfType(lhs.getType(), lhs), Value(),
                                  DictionaryAttr());
  keep(product);
  Value wide = convert(product, elements[0]);
  aten("aten.mul.Tensor", {wide, anyOfType(wide.getType(), wide)},
       wide.getType());
}

void Generator::addOperation() {
  if (hasProducts && chance(20))
    return addProduct();
  using Add = void (Generator::*)();
  static const Add choices[] = {
      &Generator::addConversion, &Generator::addConversion,
      &Generator::addConversion, &Generator::addRoundTrip,
      &Generator::addRoundTrip,  &Generator::addRounding,
      &Generator::addView,       &Generator::addView,
      &Generator::addMovement,   &Generator::addMovement,
      &Generator::addMonotone,   &Generator::addArithmetic,
      &Generator::addArithmetic, &Generator::addReduction,
      &Generator::addObserver,   &Generator::addMatmul};
  (this->*choices[below(std::size(choices))])();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void Generator::addArguments(func::FuncOp func) {
  Block *block = func.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  for (Value argument : block->getArguments()) {
    if (typeOf(argument).getElementType().isInteger(64))
      indices.push_back(argument);
    else if (typeOf(argument).getElementType().isInteger(1))
      masks.push_back(argument);
    else
      floats.push_back(argument);
  }
}

/// All values that nobody reads, and a few others.
void Generator::addReturn(func::FuncOp func) {
  SmallVector<Value> outputs;
  for (Value value : floats)
    if (value.use_empty() || chance(5))
      outputs.push_back(value);
  func::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);
  func.setType(builder.getFunctionType(func.getFunctionType().getInputs(),
                                       TypeRange(ValueRange(outputs))));
}

OwningOpRef<ModuleOp> Generator::make() {
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> inputs = {
      RankedTensorType::get({4}, elements[0]),
      RankedTensorType::get({2, 2}, randomElement()),
      RankedTensorType::get({4}, randomElement()),
      RankedTensorType::get({2, 2}, elements[1 + below(2)]),
      RankedTensorType::get({4}, builder.getI1Type()),
      RankedTensorType::get({2}, builder.getI64Type())};
  auto func = func::FuncOp::create(builder, loc, "f",
                                   builder.getFunctionType(inputs, {}));
  if (chance(50))
    func->setAttr(MPDialect::kTargetAttrName, builder.getStringAttr("cuda"));
  addArguments(func);
  unsigned size = 8 + below(28), forward = chance(50) ? size : below(size);
  for (unsigned i = 0; i != size; ++i) {
    inBackward = i >= forward;
    addOperation();
  }
  addReturn(func);
  return module;
}

OwningOpRef<ModuleOp> mlir::mp::makeRandomGraph(MLIRContext *context,
                                                uint64_t seed, bool isTraced,
                                                bool hasProducts) {
  context->loadDialect<MPDialect, func::FuncDialect>();
  return Generator(context, seed, isTraced, hasProducts).make();
}
