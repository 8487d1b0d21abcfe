//===- PointwiseEvaluators.cpp - elementwise arithmetic and comparison ----===//
//
// Computed in f64 and rounded once to the result type. For f32, f16 and bf16
// that is the correctly rounded result of +, -, *, / and sqrt (53 bits are more
// than 2 * 24 + 2), and for exp, tanh and the like the best that one can ask of
// a library. Operands are converted to the result type first, as PyTorch
// promotes them.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp::reference;

std::vector<Tensor> mlir::mp::reference::one(Tensor result) {
  std::vector<Tensor> results;
  results.push_back(std::move(result));
  return results;
}

Shape mlir::mp::reference::broadcastShapes(Call &call, ArrayRef<int64_t> a,
                                           ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape shape(a.begin(), a.end());
  size_t added = a.size() - b.size();
  for (auto [i, size] : llvm::enumerate(b)) {
    int64_t &target = shape[added + i];
    call.require(target == size || target == 1 || size == 1,
                 "sizes " + Twine(target) + " and " + Twine(size) +
                     " do not broadcast");
    target = target == 1 ? size : target;
  }
  return shape;
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <typename Function>
static std::vector<Tensor> mapUnary(Call &call, Function function) {
  const Tensor &input = call.operand(0);
  Tensor result(call.resultType(), input.shape);
  for (int64_t i = 0, end = input.numElements(); i != end; ++i)
    result.set(i, function(input.number(i)));
  return one(std::move(result));
}

template <double (*function)(double)>
static std::vector<Tensor> evaluateUnary(Call &call) {
  return mapUnary(call, function);
}

static double negate(double x) { return -x; }
static double reciprocal(double x) { return 1 / x; }
static double reciprocalRoot(double x) { return 1 / std::sqrt(x); }
static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double silu(double x) { return x / (1 + std::exp(-x)); }
/// -0 and NaN stay, as in PyTorch.
static double relu(double x) { return x < 0 ? 0.0 : x; }

static std::vector<Tensor> evaluateGelu(Call &call) {
  StringRef approximate = call.text("approximate", "none");
  if (approximate == "tanh")
    return mapUnary(call, [](double x) {
      double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1 + std::tanh(inner));
    });
  return mapUnary(call, [](double x) {
    return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
  });
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// The second operand, or the scalar argument of that name. Next to a half
/// tensor a scalar is an f32 number, since PyTorch computes in f32.
static Tensor secondOperand(Call &call, StringRef name, bool inOperandType) {
  if (!call.has(name))
    return call.operand(1);
  Type element = call.operand(0).element;
  Builder builder(call.op()->getContext());
  if (!isa<FloatType>(element))
    element = isa<FloatType>(call.resultType()) ? call.resultType()
                                                : builder.getF64Type();
  if (!inOperandType && !element.isF64())
    element = builder.getF32Type();
  Tensor value(element, {});
  value.set(0, call.number(name));
  return value;
}

template <typename Function>
static std::vector<Tensor> mapBinary(Call &call, const Tensor &a,
                                     const Tensor &b, Function function) {
  Shape shape = broadcastShapes(call, a.shape, b.shape);
  if (call.failed())
    return {};
  Tensor result(call.resultType(), shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    result.set(i, function(a.number(broadcastOffset(a.shape, index)),
                           b.number(broadcastOffset(b.shape, index))));
  });
  return one(std::move(result));
}

/// A float operand as the operator reads it: in the result's type. A scalar
/// argument is no tensor and is read as it is.
static Tensor promoted(Call &call, Tensor value) {
  if (value.isFloat())
    for (double &element : value.floats)
      element = roundTo(call.resultType(), element);
  return value;
}

template <typename Function>
static std::vector<Tensor> mapArithmetic(Call &call, StringRef scalar,
                                         Function function) {
  Tensor second = secondOperand(call, scalar, /*inOperandType=*/false);
  if (call.failed())
    return {};
  return mapBinary(call, promoted(call, call.operand(0)),
                   call.has(scalar) ? second : promoted(call, second),
                   function);
}

/// Integers are computed in f64 too: exact up to 2^53.
template <int sign>
static std::vector<Tensor> evaluateAdd(Call &call) {
  double alpha = call.number("alpha", 1);
  return mapArithmetic(call, "other", [alpha](double a, double b) {
    return a + sign * (alpha * b);
  });
}

static std::vector<Tensor> evaluateMul(Call &call) {
  return mapArithmetic(call, "other", [](double a, double b) { return a * b; });
}

static std::vector<Tensor> evaluateDiv(Call &call) {
  call.require(!call.has("rounding_mode"), "has a rounding mode");
  return mapArithmetic(call, "other", [](double a, double b) { return a / b; });
}

static std::vector<Tensor> evaluatePow(Call &call) {
  return mapArithmetic(call, "exponent",
                       [](double a, double b) { return std::pow(a, b); });
}

/// NaN wins. Of two equal zeros the first is taken, as in PyTorch's scalar
/// code: so the order of the operands shows, and so does the sign that a
/// rounding gives to a zero.
static double maximumOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return a < b ? b : a;
}

static double minimumOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return b < a ? b : a;
}

template <double (*function)(double, double)>
static std::vector<Tensor> evaluateExtremum(Call &call) {
  return mapArithmetic(call, "other", function);
}

/// Comparisons read both operands in their common type; a scalar takes the
/// tensor's.
template <typename Comparison>
static std::vector<Tensor> evaluateComparison(Call &call) {
  Tensor second = secondOperand(call, "other", /*inOperandType=*/true);
  if (call.failed())
    return {};
  return mapBinary(call, call.operand(0), second, Comparison());
}

void mlir::mp::reference::addPointwiseEvaluators(EvaluatorTable &table) {
  table["aten.relu"] = evaluateUnary<relu>;
  table["aten.neg"] = evaluateUnary<negate>;
  table["aten.abs"] = evaluateUnary<std::fabs>;
  table["aten.exp"] = evaluateUnary<std::exp>;
  table["aten.log"] = evaluateUnary<std::log>;
  table["aten.tanh"] = evaluateUnary<std::tanh>;
  table["aten.erf"] = evaluateUnary<std::erf>;
  table["aten.sin"] = evaluateUnary<std::sin>;
  table["aten.cos"] = evaluateUnary<std::cos>;
  table["aten.sqrt"] = evaluateUnary<std::sqrt>;
  table["aten.rsqrt"] = evaluateUnary<reciprocalRoot>;
  table["aten.reciprocal"] = evaluateUnary<reciprocal>;
  table["aten.sigmoid"] = evaluateUnary<sigmoid>;
  table["aten.silu"] = evaluateUnary<silu>;
  table["aten.gelu"] = evaluateGelu;
  table["aten.floor"] = evaluateUnary<std::floor>;
  table["aten.ceil"] = evaluateUnary<std::ceil>;
  table["aten.trunc"] = evaluateUnary<std::trunc>;
  table["aten.round"] = evaluateUnary<std::nearbyint>; // ties to even
  table["aten.add"] = evaluateAdd<1>;
  table["aten.sub"] = evaluateAdd<-1>;
  table["aten.mul"] = evaluateMul;
  table["aten.div"] = evaluateDiv;
  table["aten.pow"] = evaluatePow;
  table["aten.maximum"] = evaluateExtremum<maximumOf>;
  table["aten.minimum"] = evaluateExtremum<minimumOf>;
  table["aten.eq"] = evaluateComparison<std::equal_to<double>>;
  table["aten.ne"] = evaluateComparison<std::not_equal_to<double>>;
  table["aten.lt"] = evaluateComparison<std::less<double>>;
  table["aten.le"] = evaluateComparison<std::less_equal<double>>;
  table["aten.gt"] = evaluateComparison<std::greater<double>>;
  table["aten.ge"] = evaluateComparison<std::greater_equal<double>>;
}
