//===- MatmulEvaluators.cpp - matrix products -----------------------------===//
//
// Products of halves and of f32 are exact in f64, and so is a short sum of half
// products. The sum runs in f64 in the order of the inner dimension and is
// rounded once to the result type.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"
#include "dialect/IR/MPOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

/// alpha * lhs x rhs + beta * bias, for matrices or batches of them.
static std::vector<Tensor> multiply(Call &call, const Tensor &lhs,
                                    const Tensor &rhs, const Tensor *bias) {
  bool batched = lhs.rank() == 3;
  if (!call.require(lhs.rank() == rhs.rank() && (batched || lhs.rank() == 2),
                    "needs two matrices or two batches of them"))
    return {};
  int64_t batch = batched ? lhs.shape[0] : 1;
  int64_t rows = lhs.shape[batched], inner = lhs.shape[batched + 1];
  int64_t columns = rhs.shape[batched + 1];
  call.require(inner == rhs.shape[batched], "inner sizes differ");
  call.require(!batched || batch == rhs.shape[0], "batch sizes differ");
  call.require(lhs.isFloat() && rhs.isFloat(), "multiplies integers");
  double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  Shape shape = {rows, columns};
  if (batched)
    shape.insert(shape.begin(), batch);
  if (bias)
    call.require(broadcastShapes(call, shape, bias->shape) == shape,
                 "the bias does not broadcast");
  if (call.failed())
    return {};

  Tensor result(call.resultType(), shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    int64_t row = index[batched], column = index[batched + 1];
    int64_t b = batched ? index[0] : 0;
    double sum = 0;
    for (int64_t k = 0; k != inner; ++k)
      sum += lhs.floats[(b * rows + row) * inner + k] *
             rhs.floats[(b * inner + k) * columns + column];
    sum *= alpha;
    // A bias that beta = 0 switches off may hold NaN.
    if (bias && beta != 0)
      sum += beta * bias->number(broadcastOffset(bias->shape, index));
    result.set(i, sum);
  });
  return one(std::move(result));
}

static std::vector<Tensor> evaluateProduct(Call &call) {
  return multiply(call, call.operand(0), call.operand(1), nullptr);
}

static std::vector<Tensor> evaluateProductOntoBias(Call &call) {
  return multiply(call, call.operand(1), call.operand(2), &call.operand(0));
}

/// mp.matmul names its bias last.
static std::vector<Tensor> evaluateMatmulOp(Call &call) {
  bool hasBias = bool(cast<MatmulOp>(call.op()).getBias());
  return multiply(call, call.operand(0), call.operand(1),
                  hasBias ? &call.operand(2) : nullptr);
}

void mlir::mp::reference::addMatmulEvaluators(EvaluatorTable &table) {
  table["mp.matmul"] = evaluateMatmulOp;
  table["aten.mm"] = evaluateProduct;
  table["aten.bmm"] = evaluateProduct;
  table["aten.addmm"] = evaluateProductOntoBias;
  table["aten.baddbmm"] = evaluateProductOntoBias;
}
