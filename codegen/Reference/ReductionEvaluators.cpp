//===- ReductionEvaluators.cpp - sums, extrema and positions --------------===//
//
// Sums run in f64 in row-major order and are rounded once to the result type: a
// kernel's f32 accumulator is modelled as if it were wide enough.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp::reference;

namespace {
/// Which result element each input element goes to.
struct Reduction {
  Shape kept;        ///< the input's shape with reduced dimensions of size 1
  Shape result;      ///< shape of the result
  int64_t count = 1; ///< number of elements behind each result element
};
} // namespace

static Reduction reductionOf(const Tensor &input, ArrayRef<int64_t> dims,
                             bool keep) {
  Reduction reduction;
  for (auto [i, size] : llvm::enumerate(input.shape)) {
    bool reduced = llvm::is_contained(dims, int64_t(i));
    reduction.kept.push_back(reduced ? 1 : size);
    reduction.count *= reduced ? size : 1;
    if (!reduced || keep)
      reduction.result.push_back(reduced ? 1 : size);
  }
  return reduction;
}

/// Folds the elements behind each result element with `fold`, from `initial`.
template <typename Fold>
static std::vector<double> folded(const Tensor &input,
                                  const Reduction &reduction, double initial,
                                  Fold fold) {
  std::vector<double> values(numElements(reduction.kept), initial);
  forEachIndex(input.shape, [&](ArrayRef<int64_t> index, int64_t i) {
    double &value = values[broadcastOffset(reduction.kept, index)];
    value = fold(value, input.number(i));
  });
  return values;
}

static std::vector<Tensor> rounded(Call &call, ArrayRef<int64_t> shape,
                                   ArrayRef<double> values) {
  Tensor result(call.resultType(), shape);
  for (auto [i, value] : llvm::enumerate(values))
    result.set(i, value);
  return one(std::move(result));
}

template <bool isMean>
static std::vector<Tensor> evaluateSum(Call &call) {
  const Tensor &input = call.operand(0);
  Reduction reduction = reductionOf(input, call.dims("dim", input.rank()),
                                    call.boolean("keepdim", false));
  std::vector<double> sums =
      folded(input, reduction, 0, [](double a, double b) { return a + b; });
  if (isMean)
    for (double &sum : sums)
      sum /= double(reduction.count);
  return rounded(call, reduction.result, sums);
}

/// NaN wins; of two equal zeros the first is taken (see maximum).
static bool isAbove(double a, double b) {
  return !std::isnan(b) && (std::isnan(a) || a > b);
}

template <int sign>
static std::vector<Tensor> evaluateExtremum(Call &call) {
  const Tensor &input = call.operand(0);
  Reduction reduction = reductionOf(input, call.dims("dim", input.rank()),
                                    call.boolean("keepdim", false));
  call.require(reduction.count > 0, "reduces no element");
  std::vector<double> values = folded(
      input, reduction, -sign * std::numeric_limits<double>::infinity(),
      [](double a, double b) { return isAbove(sign * b, sign * a) ? b : a; });
  return rounded(call, reduction.result, values);
}

/// The first position of the extremum; over all elements without `dim`.
template <int sign>
static std::vector<Tensor> evaluatePosition(Call &call) {
  Tensor input = call.operand(0);
  bool keep = call.boolean("keepdim", false) && call.has("dim");
  if (!call.has("dim"))
    input.shape.assign({input.numElements()});
  int64_t dim = call.dim("dim", input.rank(), 0);
  if (!call.require(input.numElements() > 0, "reduces no element"))
    return {};
  if (input.shape.empty())
    input.shape.push_back(1);
  Reduction reduction = reductionOf(input, {dim}, keep);
  Tensor result(call.resultType(), reduction.result);
  std::vector<double> best(result.numElements(),
                           -std::numeric_limits<double>::infinity());
  forEachIndex(input.shape, [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t target = broadcastOffset(reduction.kept, index);
    double value = sign * input.number(i);
    // Equal zeros tie whatever their sign, and the first of a tie counts.
    bool wins = (std::isnan(value) && !std::isnan(best[target])) ||
                value > best[target];
    if (!wins)
      return;
    best[target] = value;
    result.setInt(target, index[dim]);
  });
  return one(std::move(result));
}

void mlir::mp::reference::addReductionEvaluators(EvaluatorTable &table) {
  table["aten.sum"] = evaluateSum<false>;
  table["aten.mean"] = evaluateSum<true>;
  table["aten.amax"] = evaluateExtremum<1>;
  table["aten.amin"] = evaluateExtremum<-1>;
  table["aten.argmax"] = evaluatePosition<1>;
  table["aten.argmin"] = evaluatePosition<-1>;
}
