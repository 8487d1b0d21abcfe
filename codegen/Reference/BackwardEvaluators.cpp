//===- BackwardEvaluators.cpp - what a training step adds -----------------===//
//
// Derivatives, losses and attention. Sums stay in f64; each result is rounded
// once to its type.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"
#include "codegen/Reference/Lines.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp::reference;

/// True for two floats of one shape.
static bool areAlike(Call &call, const Tensor &a, const Tensor &b) {
  return call.require(a.isFloat() && b.isFloat() && a.shape == b.shape,
                      "needs two float tensors of one shape");
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static double geluSlope(double x) {
  double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  return (1 + std::erf(x / std::sqrt(2.0))) / 2 + x * density;
}

static double geluTanhSlope(double x) {
  double factor = std::sqrt(2 / M_PI);
  double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 +
         x * (1 - t * t) / 2 * factor * (1 + 3 * 0.044715 * x * x);
}

static double siluSlope(double x) {
  double sigmoid = 1 / (1 + std::exp(-x));
  return sigmoid * (1 + x * (1 - sigmoid));
}

/// The gradient, operand 0, times the slope at operand 1.
static std::vector<Tensor> evaluateSlope(Call &call, double (*slope)(double)) {
  const Tensor &gradient = call.operand(0), &input = call.operand(1);
  if (!areAlike(call, gradient, input))
    return {};
  Tensor result(call.resultType(), input.shape);
  for (int64_t i = 0, end = input.numElements(); i != end; ++i)
    result.set(i, gradient.floats[i] * slope(input.floats[i]));
  return one(std::move(result));
}

static std::vector<Tensor> evaluateGeluBackward(Call &call) {
  bool isTanh = call.text("approximate", "none") == "tanh";
  return evaluateSlope(call, isTanh ? geluTanhSlope : geluSlope);
}

static std::vector<Tensor> evaluateSiluBackward(Call &call) {
  return evaluateSlope(call, siluSlope);
}

//===----------------------------------------------------------------------===//
// Norms and softmax
//===----------------------------------------------------------------------===//

/// Of the gradient and the result y: (g - sum(g y)) y, or g - exp(y) sum(g).
template <bool isLog>
static std::vector<Tensor> evaluateSoftmaxBackward(Call &call) {
  const Tensor &gradient = call.operand(0), &output = call.operand(1);
  int64_t dim = call.dim("dim", output.rank());
  if (!areAlike(call, gradient, output) || call.failed())
    return {};
  Tensor result(call.resultType(), output.shape);
  forEachLine(output, dim, [&](ArrayRef<int64_t> line) {
    double sum = 0;
    for (int64_t i : line)
      sum += gradient.floats[i] * (isLog ? 1 : output.floats[i]);
    for (int64_t i : line) {
      double g = gradient.floats[i], y = output.floats[i];
      result.set(i, isLog ? g - std::exp(y) * sum : (g - sum) * y);
    }
  });
  return one(std::move(result));
}

static std::vector<Tensor> evaluateLayerNormBackward(Call &call) {
  const Tensor &gradient = call.operand(0), &input = call.operand(1);
  const Tensor *mean = call.tensor("mean", 2), *rstd = call.tensor("rstd", 3);
  const Tensor *weight = call.tensor("weight", 4);
  int64_t rows = mean ? mean->numElements() : 0;
  int64_t width = rows ? input.numElements() / rows : 0;
  call.require(mean && rstd && rstd->numElements() == rows,
               "needs the mean and deviation of each row");
  call.require(weight && weight->numElements() == width &&
                   call.op()->getNumResults() == 3,
               "needs a weight and three results");
  if (!areAlike(call, gradient, input) || call.failed())
    return {};
  Tensor byInput(call.resultType(0), input.shape);
  std::vector<double> byWeight(width), byBias(width);
  for (int64_t row = 0; row != rows; ++row) {
    const double *g = gradient.floats.data() + row * width;
    auto normal = [&](int64_t i) {
      double x = input.floats[row * width + i];
      return (x - mean->floats[row]) * rstd->floats[row];
    };
    double sum = 0, product = 0;
    for (int64_t i = 0; i != width; ++i) {
      sum += g[i] * weight->floats[i];
      product += g[i] * weight->floats[i] * normal(i);
      byWeight[i] += g[i] * normal(i);
      byBias[i] += g[i];
    }
    for (int64_t i = 0; i != width; ++i)
      byInput.set(row * width + i,
                  rstd->floats[row] * (g[i] * weight->floats[i] -
                                       (sum + normal(i) * product) / width));
  }
  std::vector<Tensor> results = {std::move(byInput),
                                 Tensor(call.resultType(1), weight->shape),
                                 Tensor(call.resultType(2), weight->shape)};
  for (int64_t i = 0; i != width; ++i) {
    results[1].set(i, byWeight[i]);
    results[2].set(i, byBias[i]);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Loss and embedding
//===----------------------------------------------------------------------===//

namespace {
/// Arguments of the negative log likelihood, forward and backward.
struct LikelihoodArguments {
  enum Reduction : int64_t { None, Mean, Sum };

  const Tensor &target;
  int64_t reduction, ignored, classes;

  /// The place of each row's class in the input, -1 for an ignored row.
  int64_t placeOf(int64_t row) const {
    int64_t index = target.ints[row];
    return index == ignored ? -1 : row * classes + index;
  }
  int64_t numCounted() const {
    return target.numElements() - llvm::count(target.ints, ignored);
  }
};
} // namespace

static LikelihoodArguments likelihoodArguments(Call &call, const Tensor &input,
                                               const Tensor &target) {
  LikelihoodArguments arguments{target, call.integer("reduction", 1),
                                call.integer("ignore_index", -100),
                                input.rank() == 2 ? input.shape[1] : 0};
  call.require(!call.has("weight"), "has weights of classes");
  call.require(input.rank() == 2 && input.isFloat() && !target.isFloat() &&
                   target.shape == Shape{input.shape[0]},
               "needs rows of floats and a class for each");
  for (int64_t index : target.ints)
    call.require(index == arguments.ignored ||
                     (index >= 0 && index < arguments.classes),
                 "has no class " + Twine(index));
  return arguments;
}

static std::vector<Tensor> evaluateLikelihood(Call &call) {
  const Tensor &input = call.operand(0), &target = call.operand(1);
  LikelihoodArguments arguments = likelihoodArguments(call, input, target);
  if (call.failed())
    return {};
  bool hasRows = arguments.reduction == LikelihoodArguments::None;
  Tensor loss(call.resultType(0), hasRows ? target.shape : Shape());
  Tensor total(call.resultType(1), {});
  double sum = 0;
  for (int64_t row = 0, end = target.numElements(); row != end; ++row) {
    int64_t place = arguments.placeOf(row);
    double value = place < 0 ? 0 : -input.floats[place];
    sum += value;
    if (hasRows)
      loss.set(row, value);
  }
  double count = arguments.numCounted();
  if (!hasRows) {
    loss.set(0, arguments.reduction == LikelihoodArguments::Mean ? sum / count
                                                                 : sum);
    total.set(0, count);
  }
  return {std::move(loss), std::move(total)};
}

static std::vector<Tensor> evaluateLikelihoodBackward(Call &call) {
  const Tensor &gradient = call.operand(0), &input = call.operand(1);
  const Tensor &target = call.operand(2);
  LikelihoodArguments arguments = likelihoodArguments(call, input, target);
  bool hasRows = arguments.reduction == LikelihoodArguments::None;
  call.require(gradient.isFloat() && gradient.numElements() ==
                                         (hasRows ? target.numElements() : 1),
               "has a gradient of another size");
  if (call.failed())
    return {};
  double divisor = arguments.reduction == LikelihoodArguments::Mean
                       ? arguments.numCounted()
                       : 1;
  Tensor result(call.resultType(), input.shape);
  for (int64_t row = 0, end = target.numElements(); row != end; ++row)
    if (int64_t place = arguments.placeOf(row); place >= 0)
      result.set(place, -gradient.floats[hasRows ? row : 0] / divisor);
  return one(std::move(result));
}

static std::vector<Tensor> evaluateEmbeddingBackward(Call &call) {
  const Tensor &gradient = call.operand(0), &indices = call.operand(1);
  int64_t rows = call.integer("num_weights");
  int64_t padding = call.integer("padding_idx", -1);
  int64_t count = indices.numElements();
  int64_t width = count ? gradient.numElements() / count : 0;
  call.require(gradient.isFloat() && !indices.isFloat() &&
                   width * count == gradient.numElements(),
               "needs a row of floats for each index");
  call.require(!call.boolean("scale_grad_by_freq", false),
               "scales by frequency");
  for (int64_t index : indices.ints)
    call.require(index >= 0 && index < rows, "has no row " + Twine(index));
  if (call.failed())
    return {};
  std::vector<double> sums(rows * width);
  for (int64_t i = 0; i != count; ++i)
    for (int64_t k = 0; indices.ints[i] != padding && k != width; ++k)
      sums[indices.ints[i] * width + k] += gradient.floats[i * width + k];
  Tensor result(call.resultType(), {rows, width});
  for (auto [i, sum] : llvm::enumerate(sums))
    result.set(i, sum);
  return one(std::move(result));
}

void mlir::mp::reference::addBackwardEvaluators(EvaluatorTable &table) {
  table["aten.gelu_backward"] = evaluateGeluBackward;
  table["aten.silu_backward"] = evaluateSiluBackward;
  table["aten._softmax_backward_data"] = evaluateSoftmaxBackward<false>;
  table["aten._log_softmax_backward_data"] = evaluateSoftmaxBackward<true>;
  table["aten.native_layer_norm_backward"] = evaluateLayerNormBackward;
  table["aten.nll_loss_forward"] = evaluateLikelihood;
  table["aten.nll_loss_backward"] = evaluateLikelihoodBackward;
  table["aten.embedding_dense_backward"] = evaluateEmbeddingBackward;
}
