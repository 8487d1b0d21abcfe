//===- MatmulWriter.cpp - matmul kernels of the backend contract ----------===//

#include "codegen/Lower/KernelWriter.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

namespace {
class MatmulWriter {
public:
  MatmulWriter(KernelWriter &writer, NodeGraph &graph)
      : writer(writer), graph(graph) {}

  bool run(std::string &reason);

private:
  void writeContraction();
  void writeEpilogue();
  Value writeSum(const FactorSum &sum);
  Value writeFactorSum(const FactorSum &sum);
  bool collect(std::string &reason);
  bool collectSum(Node *node);
  Node *stored(Node *node);
  AffineMap factorMap(unsigned own, bool isLhs, bool isTransposed) const;

  KernelWriter &writer;
  NodeGraph &graph;
  llvm::SetVector<Node *> elements; ///< what the epilogue yields
  SmallVector<Node *> sums;         ///< over the rows of its results
  SmallVector<Node *> converted;    ///< of these sums
  Node *copy = nullptr;             ///< of the accumulator
};
} // namespace

/// lhs is read at (m, k) and rhs at (k, n), the other way round if transposed.
AffineMap MatmulWriter::factorMap(unsigned own, bool isLhs,
                                  bool isTransposed) const {
  MLIRContext *context = writer.getBuilder().getContext();
  unsigned first = writer.isBatched();
  AffineExpr outer = getAffineDimExpr(own, context);
  AffineExpr inner = getAffineDimExpr(first + 2, context);
  if (isLhs == isTransposed)
    std::swap(outer, inner);
  SmallVector<AffineExpr> read;
  if (first)
    read.push_back(getAffineDimExpr(0, context));
  read.append({outer, inner});
  return AffineMap::get(first + 3, 0, read, context);
}

static Value widen(Scalars &s, Value value) { return s.toFloat(value); }

void MatmulWriter::writeContraction() {
  using utils::IteratorType;
  OpBuilder &builder = writer.getBuilder();
  unsigned first = writer.isBatched();
  auto func = cast<func::FuncOp>(builder.getBlock()->getParentOp());
  Value lhs = func.getArgument(graph.lhs.argument);
  Value rhs = func.getArgument(graph.rhs.argument);
  Value start =
      writer.zeros(writer.shapeOf(Place::Element), builder.getF32Type());
  SmallVector<IteratorType> iterators(first + 2, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  SmallVector<AffineMap> maps{
      factorMap(first, true, graph.lhs.isTransposed),
      factorMap(first + 1, false, graph.rhs.isTransposed),
      AffineMap::getMultiDimIdentityMap(first + 3, builder.getContext())
          .dropResult(first + 2)};
  linalg::GenericOp op = writer.generic(
      {lhs, rhs}, start, maps, iterators,
      [&](OpBuilder &nested, ValueRange arguments) {
        Scalars s(nested, writer.getLoc(), first + 1);
        Value product = s.mul(widen(s, arguments[0]), widen(s, arguments[1]));
        Value sum = s.add(arguments[2], product);
        linalg::YieldOp::create(nested, writer.getLoc(), sum);
      });
  writer.setValue(graph.accumulator, op.getResult(0));
}

/// The accumulator as a result of the epilogue, for sums over it.
Node *MatmulWriter::stored(Node *node) {
  if (node != graph.accumulator)
    return node;
  if (!copy)
    copy = graph.compute(Place::Element, node->type, {node},
                         [](Scalars &, ValueRange v) { return v[0]; });
  return copy;
}

/// The sum of an epilogue's result that a column is, perhaps converted.
bool MatmulWriter::collectSum(Node *node) {
  Node *sum = node->isConversion ? node->inputs.front() : node;
  if (sum->kind != Node::Kind::ColumnReduction)
    return false;
  Node *&summed = sum->inputs.front();
  // What a sum widens is stored as it was before.
  bool isWidened = summed->isConversion && summed->type.isF32() &&
                   isHalf(summed->inputs.front()->type);
  if (isWidened)
    elements.insert(summed->inputs.front());
  else
    elements.insert(summed = stored(summed));
  if (!llvm::is_contained(sums, sum))
    sums.push_back(sum);
  if (node != sum && !llvm::is_contained(converted, node))
    converted.push_back(node);
  return true;
}

/// What is stored, or summed up, after the product.
bool MatmulWriter::collect(std::string &reason) {
  for (GraphResult &result : graph.results) {
    Node *node = result.node;
    if (!node || node == graph.accumulator)
      continue;
    if (node->place == Place::Element) {
      elements.insert(node);
    } else if (!collectSum(node)) {
      reason = "one of its results is no element and no sum of them";
      return false;
    }
  }
  // Stored once, where it is stored anyway; and it is one result at most.
  auto isAccumulator = [&](const GraphResult &result) {
    return result.node == graph.accumulator;
  };
  if (copy || llvm::count_if(graph.results, isAccumulator) > 1)
    for (GraphResult &result : graph.results)
      if (isAccumulator(result))
        elements.insert(result.node = stored(result.node));
  return true;
}

void MatmulWriter::writeEpilogue() {
  if (!elements.empty())
    writer.write(elements.getArrayRef(), {Loops::Matrix, writer.isBatched()},
                 graph.accumulator);
  for (Node *sum : sums)
    writer.writeReduction(sum);
  for (Node *node : converted)
    writer.write(node, {Loops::Columns});
}

Value MatmulWriter::writeSum(const FactorSum &sum) {
  using utils::IteratorType;
  OpBuilder &builder = writer.getBuilder();
  auto func = cast<func::FuncOp>(builder.getBlock()->getParentOp());
  const Factor &factor = sum.isLhs ? graph.lhs : graph.rhs;
  Value matrix = func.getArgument(sum.argument);
  MLIRContext *context = builder.getContext();
  AffineMap plain = AffineMap::getMultiDimIdentityMap(2, context);
  AffineMap swapped =
      AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, context);
  Value start =
      writer.zeros(writer.shapeOf(sum.isLhs ? Place::Row : Place::Column),
                   builder.getF32Type());
  bool readsInOrder = sum.isLhs != factor.isTransposed;
  linalg::GenericOp op = writer.generic(
      matrix, start, {readsInOrder ? plain : swapped, plain.dropResult(1)},
      {IteratorType::parallel, IteratorType::reduction},
      [&](OpBuilder &nested, ValueRange arguments) {
        Scalars s(nested, writer.getLoc(), 0);
        linalg::YieldOp::create(nested, writer.getLoc(),
                                s.add(arguments[1], s.toFloat(arguments[0])));
      });
  return op.getResult(0);
}

/// In f32, then rounded once if its type is narrower.
Value MatmulWriter::writeFactorSum(const FactorSum &sum) {
  Place place = sum.isLhs ? Place::Row : Place::Column;
  graph.nodes.push_back(
      {Node::Kind::ColumnReduction, place, writer.getBuilder().getF32Type()});
  Node *node = &graph.nodes.back();
  writer.setValue(node, writeSum(sum));
  Node *rounded = graph.convert(node, sum.type);
  if (rounded != node)
    writer.write(rounded, {sum.isLhs ? Loops::Rows : Loops::Columns});
  return writer.valueOf(rounded);
}

bool MatmulWriter::run(std::string &reason) {
  if (!collect(reason))
    return false;
  writeContraction();
  writeEpilogue();
  SmallVector<Value> results;
  for (GraphResult &result : graph.results) {
    if (result.node) {
      results.push_back(writer.valueOf(result.node));
      continue;
    }
    results.push_back(writeFactorSum(*result.sum));
  }
  writer.finish(results);
  return true;
}

bool lower::writeMatmul(KernelWriter &writer, NodeGraph &graph,
                        std::string &reason) {
  return MatmulWriter(writer, graph).run(reason);
}
