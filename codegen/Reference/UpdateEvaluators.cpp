//===- UpdateEvaluators.cpp - what optimizers and scalers compute ---------===//
//
// Elementwise, in f64, and rounded once to the result type, as in
// PointwiseEvaluators.cpp; and the test of gradients for infinities and NaN.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp::reference;

//===----------------------------------------------------------------------===//
// Tests and flags
//===----------------------------------------------------------------------===//

template <bool (*test)(double)>
static std::vector<Tensor> evaluateTest(Call &call) {
  const Tensor &input = call.operand(0);
  Tensor result(call.resultType(), input.shape);
  for (int64_t i = 0, end = input.numElements(); i != end; ++i)
    result.setInt(i, test(input.number(i)));
  return one(std::move(result));
}

static bool isFinite(double x) { return std::isfinite(x); }
static bool isNaN(double x) { return std::isnan(x); }
static bool isZero(double x) { return x == 0; }

/// Over all elements.
static std::vector<Tensor> evaluateAny(Call &call) {
  call.require(!call.has("dim"), "reduces single dimensions");
  const Tensor &input = call.operand(0);
  Tensor result(call.resultType(), {});
  for (int64_t i = 0, end = input.numElements(); i != end; ++i)
    if (input.number(i) != 0)
      result.setInt(0, 1);
  return one(std::move(result));
}

//===----------------------------------------------------------------------===//
// Several operands
//===----------------------------------------------------------------------===//

/// `function` of the elements of operands of any number, as many as it takes.
template <typename Function>
static std::vector<Tensor> mapElements(Call &call, unsigned count,
                                       Function function) {
  Shape shape;
  for (unsigned k = 0; k != count; ++k)
    shape = broadcastShapes(call, shape, call.operand(k).shape);
  if (call.failed())
    return {};
  Tensor result(call.resultType(), shape);
  SmallVector<double, 3> elements(count);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    for (unsigned k = 0; k != count; ++k) {
      const Tensor &operand = call.operand(k);
      elements[k] = operand.number(broadcastOffset(operand.shape, index));
    }
    result.set(i, function(elements));
  });
  return one(std::move(result));
}

using Elements = ArrayRef<double>;

template <bool isQuotient>
static std::vector<Tensor> evaluateFused(Call &call) {
  double value = call.number("value", 1);
  return mapElements(call, 3, [value](Elements x) {
    double term = isQuotient ? x[1] / x[2] : x[1] * x[2];
    return x[0] + value * term;
  });
}

/// PyTorch starts at the nearer end.
static double blend(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start)
                                 : end - (end - start) * (1 - weight);
}

static std::vector<Tensor> evaluateLerp(Call &call) {
  if (!call.has("weight") || call.numOperands() == 3)
    return mapElements(call, 3,
                       [](Elements x) { return blend(x[0], x[1], x[2]); });
  double weight = call.number("weight");
  return mapElements(
      call, 2, [weight](Elements x) { return blend(x[0], x[1], weight); });
}

/// A number or a tensor; NaN of either wins.
template <bool isMinimum>
static std::vector<Tensor> evaluateLimit(Call &call) {
  auto limited = [](double x, double limit) {
    if (std::isnan(x) || std::isnan(limit))
      return std::nan("");
    bool isBeyond = isMinimum ? x < limit : x > limit;
    return isBeyond ? limit : x;
  };
  if (call.numOperands() == 2)
    return mapElements(call, 2,
                       [&](Elements x) { return limited(x[0], x[1]); });
  double limit = call.number(isMinimum ? "min" : "max");
  return mapElements(call, 1, [&](Elements x) { return limited(x[0], limit); });
}

static std::vector<Tensor> evaluateOr(Call &call) {
  return mapElements(call, 2,
                     [](Elements x) { return double(x[0] != 0 || x[1] != 0); });
}

static std::vector<Tensor> evaluateAnd(Call &call) {
  return mapElements(call, 2,
                     [](Elements x) { return double(x[0] != 0 && x[1] != 0); });
}

/// Zero, or NaN, has no sign of its own.
static std::vector<Tensor> evaluateSign(Call &call) {
  return mapElements(
      call, 1, [](Elements x) { return double((x[0] > 0) - (x[0] < 0)); });
}

static std::vector<Tensor> evaluateZeros(Call &call) {
  return one(Tensor(call.resultType(), call.operand(0).shape));
}

/// The Euclidean norm of all elements.
static std::vector<Tensor> evaluateNorm(Call &call) {
  call.require(call.number("ord", 2) == 2 && !call.has("dim"),
               "is no Euclidean norm of all elements");
  const Tensor &input = call.operand(0);
  double sum = 0;
  for (int64_t i = 0, end = input.numElements(); i != end; ++i)
    sum += input.number(i) * input.number(i);
  Tensor result(call.resultType(), {});
  result.set(0, std::sqrt(sum));
  return one(std::move(result));
}

void mlir::mp::reference::addUpdateEvaluators(EvaluatorTable &table) {
  table["aten.isfinite"] = evaluateTest<isFinite>;
  table["aten.isnan"] = evaluateTest<isNaN>;
  table["aten.logical_not"] = evaluateTest<isZero>;
  table["aten.logical_or"] = evaluateOr;
  table["aten.logical_and"] = evaluateAnd;
  table["aten.any"] = evaluateAny;
  table["aten.addcmul"] = evaluateFused<false>;
  table["aten.addcdiv"] = evaluateFused<true>;
  table["aten.lerp"] = evaluateLerp;
  table["aten.clamp_min"] = evaluateLimit<true>;
  table["aten.clamp_max"] = evaluateLimit<false>;
  table["aten.sign"] = evaluateSign;
  table["aten.zeros_like"] = evaluateZeros;
  table["aten.linalg_vector_norm"] = evaluateNorm;
}
