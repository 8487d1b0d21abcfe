//===- RowOperators.cpp - reductions, norms and softmax as nodes ----------===//
//
// Statistics and sums are f32, each result is rounded once to its type. The
// formulas are PyTorch's; the order of a sum is the kernel's.
//
//===----------------------------------------------------------------------===//

#include "codegen/Lower/Pointwise.h"
#include "codegen/Lower/RegionGraph.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

namespace {
/// Arithmetic on f32 nodes, for formulas that read as they are written.
class Formula {
public:
  Formula(Operation *op, GraphBuilder &builder)
      : op(op), builder(builder), graph(builder.getGraph()),
        f32(Float32Type::get(op->getContext())) {}

  Node *real(Value value) { return graph.convert(builder.nodeOf(value), f32); }
  Node *operand(unsigned i) { return real(op->getOperand(i)); }
  Node *named(StringRef name, unsigned position) {
    Value value = operandNamed(op, name, position);
    return value ? real(value) : nullptr;
  }
  void set(unsigned result, Node *node) {
    if (result < op->getNumResults())
      builder.set(op->getResult(result), node);
  }

  Node *sum(Node *a) { return graph.reduceRows(a, Combiner::Add, f32); }
  Node *maximum(Node *a) { return graph.reduceRows(a, Combiner::Maximum, f32); }
  Node *sumColumns(Node *a) { return graph.sumColumns(a); }

  Node *add(Node *a, Node *b) { return binary<arith::AddFOp>(a, b); }
  Node *sub(Node *a, Node *b) { return binary<arith::SubFOp>(a, b); }
  Node *mul(Node *a, Node *b) { return binary<arith::MulFOp>(a, b); }
  Node *div(Node *a, Node *b) { return binary<arith::DivFOp>(a, b); }
  Node *exp(Node *a) { return unary<math::ExpOp>(a); }
  Node *log(Node *a) { return unary<math::LogOp>(a); }
  Node *rsqrt(Node *a) { return unary<math::RsqrtOp>(a); }
  Node *number(double value) {
    return graph.compute(Place::Scalar, f32, {}, [=](Scalars &s, ValueRange) {
      return s.number(value);
    });
  }
  Node *columns() { return number(double(graph.space.columns)); }
  Node *mean(Node *a) { return div(sum(a), columns()); }
  /// The mean, and the mean of squares around it.
  std::pair<Node *, Node *> meanAndVariance(Node *x, double correction);

private:
  template <typename Op>
  Node *unary(Node *a) {
    return graph.compute(a->place, f32, {a}, [](Scalars &s, ValueRange v) {
      return s.create<Op>(v[0]);
    });
  }
  template <typename Op>
  Node *binary(Node *a, Node *b) {
    return graph.compute(
        common(a->place, b->place), f32, {a, b},
        [](Scalars &s, ValueRange v) { return s.create<Op>(v[0], v[1]); });
  }
  static Place common(Place a, Place b) {
    if (a == b || b == Place::Scalar)
      return a;
    return a == Place::Scalar ? b : Place::Element;
  }

  Operation *op;
  GraphBuilder &builder;
  NodeGraph &graph;
  Type f32;
};
} // namespace

std::pair<Node *, Node *> Formula::meanAndVariance(Node *x, double correction) {
  Node *center = mean(x), *apart = sub(x, center);
  double count = double(graph.space.columns) - correction;
  return {center, div(sum(mul(apart, apart)), number(count))};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static bool expandSum(Operation *op, GraphBuilder &builder) {
  Node *input = builder.nodeOf(op->getOperand(0));
  Type result = elementTypeOf(op->getResult(0));
  NodeGraph &graph = builder.getGraph();
  bool isOfRows = reducesColumns(op);
  if (!isa<FloatType>(result) && !isOfRows)
    return false;
  Type type = isa<FloatType>(result) ? Type(Float32Type::get(op->getContext()))
                                     : result;
  builder.set(op->getResult(0),
              isOfRows ? graph.reduceRows(input, Combiner::Add, type)
                       : graph.sumColumns(input));
  return true;
}

static bool expandMean(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  f.set(0, f.mean(f.operand(0)));
  return isa<FloatType>(elementTypeOf(op->getResult(0)));
}

template <Combiner combiner>
static bool expandExtremum(Operation *op, GraphBuilder &builder) {
  if (!isa<FloatType>(elementTypeOf(op->getResult(0))))
    return false;
  Formula f(op, builder);
  f.set(0, builder.getGraph().reduceRows(f.operand(0), combiner,
                                         Float32Type::get(op->getContext())));
  return true;
}

static bool expandVarMean(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  auto [mean, variance] =
      f.meanAndVariance(f.operand(0), numberOf(op, "correction").value_or(1));
  f.set(0, variance);
  f.set(1, mean);
  return op->getNumResults() == 2;
}

//===----------------------------------------------------------------------===//
// Indexed
//===----------------------------------------------------------------------===//

/// An element of a row that an index tells, or `otherwise`.
static Node *chooseColumn(NodeGraph &graph, Node *index, Node *there,
                          Node *otherwise) {
  return graph.compute(Place::Element, there->type, {index, there, otherwise},
                       [](Scalars &s, ValueRange v) {
                         Value column = s.column();
                         Value isThere = s.create<arith::CmpIOp>(
                             arith::CmpIPredicate::eq, column,
                             s.convert(v[0], column.getType()));
                         return s.create<arith::SelectOp>(isThere, v[1], v[2]);
                       });
}

/// The sum of a row whose other elements are taken for 0: one element is not
/// zero, so that the sum is that element.
static bool expandGather(Operation *op, GraphBuilder &builder) {
  if (!isa<FloatType>(elementTypeOf(op->getResult(0))))
    return false;
  Formula f(op, builder);
  Node *chosen =
      chooseColumn(builder.getGraph(), builder.nodeOf(op->getOperand(1)),
                   f.operand(0), f.number(0));
  f.set(0, f.sum(chosen));
  return true;
}

static bool expandScatter(Operation *op, GraphBuilder &builder) {
  NodeGraph &graph = builder.getGraph();
  Type type = elementTypeOf(op->getResult(0));
  double value = *numberOf(op, "value");
  Node *filler =
      graph.compute(Place::Scalar, type, {}, [=](Scalars &s, ValueRange) {
        return s.number(type, value);
      });
  builder.set(op->getResult(0),
              chooseColumn(graph, builder.nodeOf(op->getOperand(1)), filler,
                           builder.nodeOf(op->getOperand(0))));
  return true;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

template <bool isLog>
static bool expandSoftmax(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  Node *x = f.operand(0), *shifted = f.sub(x, f.maximum(x));
  Node *e = f.exp(shifted), *sum = f.sum(e);
  f.set(0, isLog ? f.sub(shifted, f.log(sum)) : f.div(e, sum));
  return true;
}

/// Of the gradient g and the result y: (g - sum(g y)) y, g - exp(y) sum(g).
template <bool isLog>
static bool expandSoftmaxBackward(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  Node *g = f.operand(0), *y = f.operand(1);
  f.set(0, isLog ? f.sub(g, f.mul(f.exp(y), f.sum(g)))
                 : f.mul(f.sub(g, f.sum(f.mul(g, y))), y));
  return true;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// (x - mean) rstd weight + bias
static bool expandLayerNorm(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  Node *x = f.operand(0);
  auto [mean, variance] = f.meanAndVariance(x, 0);
  Node *rstd =
      f.rsqrt(f.add(variance, f.number(numberOf(op, "eps").value_or(1e-5))));
  Node *y = f.mul(f.sub(x, mean), rstd);
  if (Node *weight = f.named("weight", 1))
    y = f.mul(y, weight);
  if (Node *bias = f.named("bias", 2))
    y = f.add(y, bias);
  f.set(0, y);
  f.set(1, mean);
  f.set(2, rstd);
  return true;
}

/// With g the gradient times the weight and n the normalized input:
/// rstd (g - (sum(g) + n sum(g n)) / columns).
static bool expandLayerNormBackward(Operation *op, GraphBuilder &builder) {
  Formula f(op, builder);
  Node *gradient = f.operand(0), *mean = f.named("mean", 2);
  Node *rstd = f.named("rstd", 3), *weight = f.named("weight", 4);
  if (!mean || !rstd || op->getNumResults() != 3)
    return false;
  Node *n = f.mul(f.sub(f.operand(1), mean), rstd);
  Node *g = weight ? f.mul(gradient, weight) : gradient;
  Node *sums = f.add(f.sum(g), f.mul(n, f.sum(f.mul(g, n))));
  f.set(0, f.mul(rstd, f.sub(g, f.div(sums, f.columns()))));
  f.set(1, f.sumColumns(f.mul(gradient, n)));
  f.set(2, f.sumColumns(gradient));
  return true;
}

/// x rstd weight
static bool expandRmsNorm(Operation *op, GraphBuilder &builder) {
  std::optional<double> eps = numberOf(op, "eps");
  if (!eps)
    return false; // the epsilon of a type that is not the kernel's
  Formula f(op, builder);
  Node *x = f.operand(0);
  Node *rstd = f.rsqrt(f.add(f.mean(f.mul(x, x)), f.number(*eps)));
  Node *y = f.mul(x, rstd);
  if (Node *weight = f.named("weight", 1))
    y = f.mul(y, weight);
  f.set(0, y);
  f.set(1, rstd);
  return true;
}

bool lower::expandRows(Operation *op, GraphBuilder &builder) {
  using Expand = bool (*)(Operation *, GraphBuilder &);
  static const llvm::StringMap<Expand> expansions = {
      {"aten.amax", expandExtremum<Combiner::Maximum>},
      {"aten.amin", expandExtremum<Combiner::Minimum>},
      {"aten.mean", expandMean},
      {"aten.sum", expandSum},
      {"aten.var_mean", expandVarMean},
      {"aten.gather", expandGather},
      {"aten.scatter", expandScatter},
      {"aten._softmax", expandSoftmax<false>},
      {"aten._log_softmax", expandSoftmax<true>},
      {"aten._softmax_backward_data", expandSoftmaxBackward<false>},
      {"aten._log_softmax_backward_data", expandSoftmaxBackward<true>},
      {"aten.native_layer_norm", expandLayerNorm},
      {"aten.native_layer_norm_backward", expandLayerNormBackward},
      {"aten._fused_rms_norm", expandRmsNorm},
  };
  Expand expand = expansions.lookup(regionOpName(op));
  return expand && expand(op, builder);
}
