//===- NormEvaluators.cpp - norms and softmax -----------------------------===//
//
// Statistics, exponentials and their sums stay in f64; each result is rounded
// once to its type.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"
#include "codegen/Reference/Lines.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp::reference;

template <bool isLog>
static std::vector<Tensor> evaluateSoftmax(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dim = call.dim("dim", input.rank());
  call.require(input.isFloat(), "needs floats");
  if (call.failed())
    return {};
  Tensor result(call.resultType(), input.shape);
  forEachLine(input, dim, [&](ArrayRef<int64_t> line) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i : line)
      top = std::isnan(top) || input.floats[i] <= top ? top : input.floats[i];
    for (int64_t i : line)
      sum += std::exp(input.floats[i] - top);
    for (int64_t i : line) {
      double shifted = input.floats[i] - top;
      result.set(i, isLog ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  });
  return one(std::move(result));
}

/// (x - mean) * rstd * weight + bias over the last dimensions, the mean and the
/// reciprocal deviation.
static std::vector<Tensor> evaluateLayerNorm(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dims = call.integers("normalized_shape").size();
  double eps = call.number("eps");
  const Tensor *weight = call.tensor("weight", 1);
  const Tensor *bias = call.tensor("bias", 2);
  call.require(dims > 0 && dims <= input.rank(), "normalizes no dimension");
  call.require(call.op()->getNumResults() == 3, "needs three results");
  if (call.failed())
    return {};
  Shape statistics(input.shape.begin(), input.shape.end() - dims);
  int64_t rows = numElements(statistics);
  int64_t width = rows ? input.numElements() / rows : 0;
  for (const Tensor *scale : {weight, bias})
    call.require(!scale || scale->numElements() == width,
                 "weight or bias has another size than a row");
  statistics.resize(input.rank(), 1);
  if (call.failed())
    return {};

  std::vector<Tensor> results = {Tensor(call.resultType(0), input.shape),
                                 Tensor(call.resultType(1), statistics),
                                 Tensor(call.resultType(2), statistics)};
  for (int64_t row = 0; row != rows; ++row) {
    const double *x = input.floats.data() + row * width;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i != width; ++i)
      mean += x[i];
    mean /= double(width);
    for (int64_t i = 0; i != width; ++i)
      variance += (x[i] - mean) * (x[i] - mean);
    double rstd = 1 / std::sqrt(variance / double(width) + eps);
    for (int64_t i = 0; i != width; ++i) {
      double scaled = (x[i] - mean) * rstd * (weight ? weight->floats[i] : 1);
      results[0].set(row * width + i, scaled + (bias ? bias->floats[i] : 0));
    }
    results[1].set(row, mean);
    results[2].set(row, rstd);
  }
  return results;
}

void mlir::mp::reference::addNormEvaluators(EvaluatorTable &table) {
  table["aten._softmax"] = evaluateSoftmax<false>;
  table["aten._log_softmax"] = evaluateSoftmax<true>;
  table["aten.native_layer_norm"] = evaluateLayerNorm;
}
