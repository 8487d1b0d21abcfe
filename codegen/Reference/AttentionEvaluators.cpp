//===- AttentionEvaluators.cpp - scaled dot product attention -------------===//
//
// Scores, weights and sums stay in f64, as if a kernel never left its wide
// accumulator; each result is rounded once to its type.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp::reference;

namespace {
/// Queries, keys and values as (heads of all batches) x length x width.
class Attention {
public:
  Attention(Call &call, const Tensor &query, const Tensor &key,
            const Tensor &value);

  const Tensor &query, &key, &value;
  int64_t heads = 0, queries = 0, keys = 0, width = 0, valueWidth = 0;
  double scale = 1;
  bool isCausal = false;

  /// The score of query i and key j of a head; minus infinity where it is
  /// masked.
  double score(int64_t head, int64_t i, int64_t j) const {
    if (isCausal && j > i)
      return -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (int64_t e = 0; e != width; ++e)
      sum += query.floats[(head * queries + i) * width + e] *
             key.floats[(head * keys + j) * width + e];
    return sum * scale;
  }
};
} // namespace

Attention::Attention(Call &call, const Tensor &query, const Tensor &key,
                     const Tensor &value)
    : query(query), key(key), value(value) {
  call.require(call.number("dropout_p", 0) == 0, "drops at random");
  call.require(!call.has("attn_mask"), "has a mask");
  call.require(query.rank() == 4 && key.rank() == 4 && value.rank() == 4 &&
                   query.isFloat() && key.isFloat() && value.isFloat(),
               "needs three float tensors of four dimensions");
  if (call.failed())
    return;
  call.require(query.shape[0] == key.shape[0] &&
                   query.shape[1] == key.shape[1] &&
                   query.shape[3] == key.shape[3] &&
                   ArrayRef(key.shape).take_front(3) ==
                       ArrayRef(value.shape).take_front(3),
               "has queries, keys and values that do not fit");
  heads = query.shape[0] * query.shape[1];
  queries = query.shape[2];
  keys = key.shape[2];
  width = query.shape[3];
  valueWidth = value.shape[3];
  isCausal = call.boolean("is_causal", false);
  scale =
      call.has("scale") ? call.number("scale") : 1 / std::sqrt(double(width));
}

static Shape withoutLast(const Shape &shape) {
  return Shape(shape.begin(), shape.end() - 1);
}

/// The attention, and the logarithm of the sum of each row's exponentials.
static std::vector<Tensor> evaluateAttention(Call &call) {
  Attention a(call, call.operand(0), call.operand(1), call.operand(2));
  call.require(call.op()->getNumResults() == 2, "needs two results");
  if (call.failed())
    return {};
  Shape shape = a.query.shape;
  shape.back() = a.valueWidth;
  Tensor output(call.resultType(0), shape);
  Tensor sums(call.resultType(1), withoutLast(a.query.shape));
  std::vector<double> scores(a.keys);
  for (int64_t row = 0; row != a.heads * a.queries; ++row) {
    int64_t head = row / a.queries, i = row % a.queries;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j != a.keys; ++j) {
      scores[j] = a.score(head, i, j);
      top = std::max(top, scores[j]);
    }
    for (double score : scores)
      sum += std::exp(score - top);
    sums.set(row, top + std::log(sum));
    for (int64_t e = 0; e != a.valueWidth; ++e) {
      double mixed = 0;
      for (int64_t j = 0; j != a.keys; ++j)
        mixed += std::exp(scores[j] - top) / sum *
                 a.value.floats[(head * a.keys + j) * a.valueWidth + e];
      output.set(row * a.valueWidth + e, mixed);
    }
  }
  return {std::move(output), std::move(sums)};
}

namespace {
/// Gradients of one attention, before they are rounded.
struct Gradients {
  std::vector<double> query, key, value;
};
} // namespace

/// Adds what row `row` of the queries contributes.
static void addRow(const Attention &a, int64_t row, const Tensor &gradient,
                   const Tensor &output, double logSum, Gradients &sums) {
  int64_t head = row / a.queries, i = row % a.queries;
  const double *g = gradient.floats.data() + row * a.valueWidth;
  double mean = 0;
  for (int64_t e = 0; e != a.valueWidth; ++e)
    mean += g[e] * output.floats[row * a.valueWidth + e];
  for (int64_t j = 0; j != a.keys; ++j) {
    int64_t other = head * a.keys + j;
    double weight = std::exp(a.score(head, i, j) - logSum), product = 0;
    for (int64_t e = 0; e != a.valueWidth; ++e) {
      product += g[e] * a.value.floats[other * a.valueWidth + e];
      sums.value[other * a.valueWidth + e] += weight * g[e];
    }
    double byScore = weight * (product - mean) * a.scale;
    for (int64_t e = 0; e != a.width; ++e) {
      sums.query[row * a.width + e] +=
          byScore * a.key.floats[other * a.width + e];
      sums.key[other * a.width + e] +=
          byScore * a.query.floats[row * a.width + e];
    }
  }
}

static Tensor rounded(Type type, const Shape &shape, ArrayRef<double> values) {
  Tensor result(type, shape);
  for (auto [i, value] : llvm::enumerate(values))
    result.set(i, value);
  return result;
}

static std::vector<Tensor> evaluateAttentionBackward(Call &call) {
  const Tensor &gradient = call.operand(0);
  Attention a(call, call.operand(1), call.operand(2), call.operand(3));
  const Tensor &output = call.operand(4), &logSums = call.operand(5);
  call.require(call.op()->getNumResults() == 3, "needs three results");
  call.require(gradient.shape == output.shape && gradient.isFloat() &&
                   output.isFloat() && logSums.isFloat() &&
                   logSums.numElements() == a.heads * a.queries &&
                   output.numElements() == a.heads * a.queries * a.valueWidth,
               "has a gradient or a result that does not fit");
  if (call.failed())
    return {};
  Gradients sums{std::vector<double>(a.query.numElements()),
                 std::vector<double>(a.key.numElements()),
                 std::vector<double>(a.value.numElements())};
  for (int64_t row = 0; row != a.heads * a.queries; ++row)
    addRow(a, row, gradient, output, logSums.floats[row], sums);
  return {rounded(call.resultType(0), a.query.shape, sums.query),
          rounded(call.resultType(1), a.key.shape, sums.key),
          rounded(call.resultType(2), a.value.shape, sums.value)};
}

void mlir::mp::reference::addAttentionEvaluators(EvaluatorTable &table) {
  StringRef name = "aten._scaled_dot_product_flash_attention_for_cpu";
  table[name] = evaluateAttention;
  table[(name + "_backward").str()] = evaluateAttentionBackward;
}
