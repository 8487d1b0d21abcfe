//===- KernelWriter.cpp - writes the function of a kernel -----------------===//

#include "codegen/Lower/KernelWriter.h"
#include "codegen/Kernel/Kernel.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> Loops::iterators() const {
  using utils::IteratorType;
  SmallVector<IteratorType> types(isBatched, IteratorType::parallel);
  types.push_back(IteratorType::parallel);
  if (kind == Matrix)
    types.push_back(IteratorType::parallel);
  if (kind == RowReduction || kind == ColumnReduction)
    types.push_back(IteratorType::reduction);
  return types;
}

unsigned Loops::columnLoop() const {
  bool isFirst = kind == Columns || kind == ColumnReduction;
  return (isFirst ? 0 : 1) + isBatched;
}

AffineMap Loops::mapOf(Place place, MLIRContext *context) const {
  unsigned count = iterators().size();
  unsigned rowLoop = (kind == ColumnReduction ? 1 : 0) + isBatched;
  SmallVector<AffineExpr> read;
  bool hasRow = place == Place::Element || place == Place::Row;
  bool hasColumn = place == Place::Element || place == Place::Column;
  if (isBatched && hasRow)
    read.push_back(getAffineDimExpr(0, context));
  if (hasRow)
    read.push_back(getAffineDimExpr(rowLoop, context));
  if (hasColumn)
    read.push_back(getAffineDimExpr(columnLoop(), context));
  return AffineMap::get(count, 0, read, context);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

KernelWriter::KernelWriter(RegionOp region, NodeGraph &graph)
    : graph(graph), builder(region.getContext()),
      // Locations are of the model and no part of what the kernel computes:
      // equal regions have one text.
      loc(builder.getUnknownLoc()), module(ModuleOp::create(loc)) {
  builder.setInsertionPointToEnd(module->getBody());
  auto type = builder.getFunctionType(region.getOperandTypes(),
                                      region.getResultTypes());
  func = func::FuncOp::create(builder, loc, kKernelName, type);
  builder.setInsertionPointToStart(func.addEntryBlock());
}

SmallVector<int64_t> KernelWriter::shapeOf(Place place) const {
  SmallVector<int64_t> shape;
  bool hasRow = place == Place::Element || place == Place::Row;
  bool hasColumn = place == Place::Element || place == Place::Column;
  if (hasRow && isBatched())
    shape.push_back(graph.space.batch);
  if (hasRow)
    shape.push_back(isBatched() ? graph.space.rows : graph.space.allRows());
  if (hasColumn)
    shape.push_back(graph.space.columns);
  return shape;
}

/// Which dimensions of `from` make each of `to`; none of `to` is dynamic but
/// the first.
static SmallVector<ReassociationIndices> groups(ArrayRef<int64_t> from,
                                                ArrayRef<int64_t> to) {
  SmallVector<ReassociationIndices> groups(to.size());
  if (to.empty())
    return groups;
  // From behind, for what is before may be dynamic.
  int64_t dim = from.size();
  for (size_t group = to.size(); group-- > 0;) {
    int64_t product = 1;
    while (dim > 0 &&
           (group == 0 || product != to[group] || groups[group].empty())) {
      --dim;
      product *= from[dim];
      groups[group].insert(groups[group].begin(), dim);
    }
  }
  return groups;
}

Value KernelWriter::argument(unsigned number, ArrayRef<int64_t> shape) {
  Value value = func.getArgument(number);
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  // Dimensions of 1 are in front: they belong to no group of their own.
  return tensor::CollapseShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), value,
      groups(type.getShape(), shape));
}

Value KernelWriter::rows() {
  if (dynamicRows)
    return dynamicRows;
  for (Node &node : graph.nodes)
    if (node.kind == Node::Kind::Argument &&
        (node.place == Place::Element || node.place == Place::Row)) {
      dynamicRows = tensor::DimOp::create(builder, loc, valueOf(&node), 0);
      return dynamicRows;
    }
  // The rows of the product are those of its left factor.
  Value lhs = func.getArgument(graph.lhs.argument);
  dynamicRows =
      tensor::DimOp::create(builder, loc, lhs, graph.lhs.isTransposed ? 1 : 0);
  return dynamicRows;
}

Value KernelWriter::empty(ArrayRef<int64_t> shape, Type type) {
  SmallVector<Value> sizes;
  if (!shape.empty() && ShapedType::isDynamic(shape.front()))
    sizes.push_back(rows());
  return tensor::EmptyOp::create(builder, loc, shape, type, sizes);
}

Value KernelWriter::zeros(ArrayRef<int64_t> shape, Type type, double start) {
  Value scalar = Scalars(builder, loc, 0).number(type, start);
  return linalg::FillOp::create(builder, loc, scalar, empty(shape, type))
      .getResult(0);
}

Value KernelWriter::inShape(Value value, RankedTensorType type) {
  auto from = cast<RankedTensorType>(value.getType());
  if (from.getShape() == type.getShape())
    return value;
  SmallVector<OpFoldResult> sizes;
  int64_t inner = 1;
  for (int64_t size : type.getShape())
    inner *= ShapedType::isDynamic(size) ? 1 : size;
  if (!type.hasStaticShape()) {
    // Only the first extent is dynamic: the rows by those behind it.
    int64_t columns = from.getRank() == 2 ? from.getDimSize(1) : 1;
    Value count = arith::ConstantIndexOp::create(builder, loc, inner / columns);
    sizes.push_back(Value(arith::DivUIOp::create(builder, loc, rows(), count)));
  }
  for (int64_t size : type.getShape().drop_front(sizes.size()))
    sizes.push_back(builder.getIndexAttr(size));
  return tensor::ExpandShapeOp::create(builder, loc, type, value,
                                       groups(type.getShape(), from.getShape()),
                                       sizes);
}

void KernelWriter::finish(ValueRange results) {
  SmallVector<Value> returned;
  for (auto [value, result] : llvm::zip_equal(results, graph.results))
    returned.push_back(inShape(value, result.type));
  func::ReturnOp::create(builder, loc, returned);
}

//===----------------------------------------------------------------------===//
// Loops over nodes
//===----------------------------------------------------------------------===//

Value KernelWriter::valueOf(Node *node) {
  Value &value = values[node];
  if (!value && node->kind == Node::Kind::Argument) {
    Value argument = this->argument(node->argument, shapeOf(node->place));
    return values[node] = argument;
  }
  return value;
}

/// The nodes that a linalg.generic reads.
struct KernelWriter::Reads {
  llvm::SetVector<Node *> nodes;
  llvm::SmallPtrSet<Node *, 16> seen;

  /// The nodes' values in the body of the linalg.generic.
  llvm::DenseMap<Node *, Value> inBody(ValueRange arguments) const {
    llvm::DenseMap<Node *, Value> values;
    for (auto [node, argument] : llvm::zip(nodes, arguments))
      values[node] = argument;
    return values;
  }
};

void KernelWriter::findReads(Node *node, Reads &reads) {
  for (Node *input : node->inputs) {
    if (!reads.seen.insert(input).second)
      continue;
    if (input->kind == Node::Kind::Argument || hasValue(input))
      reads.nodes.insert(input);
    else
      findReads(input, reads);
  }
}

void KernelWriter::addInputs(const Reads &reads, const Loops &loops,
                             SmallVectorImpl<Value> &inputs,
                             SmallVectorImpl<AffineMap> &maps) {
  for (Node *node : reads.nodes) {
    inputs.push_back(valueOf(node));
    maps.push_back(loops.mapOf(node->place, builder.getContext()));
  }
}

Value KernelWriter::emit(Node *node, Scalars &scalars,
                         llvm::DenseMap<Node *, Value> &emitted) {
  if (Value value = emitted.lookup(node))
    return value;
  SmallVector<Value> operands;
  for (Node *input : node->inputs)
    operands.push_back(emit(input, scalars, emitted));
  Value value = node->emit(scalars, operands);
  return emitted[node] = value;
}

linalg::GenericOp
KernelWriter::generic(ValueRange inputs, ValueRange outputs,
                      ArrayRef<AffineMap> maps,
                      ArrayRef<utils::IteratorType> iterators,
                      function_ref<void(OpBuilder &, ValueRange)> body) {
  return linalg::GenericOp::create(
      builder, loc, TypeRange(outputs), inputs, outputs, maps, iterators,
      [&](OpBuilder &nested, Location, ValueRange arguments) {
        body(nested, arguments);
      });
}

void KernelWriter::write(ArrayRef<Node *> nodes, Loops loops, Node *first) {
  Reads reads;
  if (first) {
    reads.seen.insert(first);
    reads.nodes.insert(first);
  }
  for (Node *node : nodes)
    findReads(node, reads);
  MLIRContext *context = builder.getContext();
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> maps;
  addInputs(reads, loops, inputs, maps);
  for (Node *node : nodes) {
    outputs.push_back(empty(shapeOf(node->place), node->type));
    maps.push_back(loops.mapOf(node->place, context));
  }
  linalg::GenericOp op =
      generic(inputs, outputs, maps, loops.iterators(),
              [&](OpBuilder &nested, ValueRange arguments) {
                Scalars scalars(nested, loc, loops.columnLoop());
                llvm::DenseMap<Node *, Value> emitted = reads.inBody(arguments);
                SmallVector<Value> yielded;
                for (Node *node : nodes)
                  yielded.push_back(emit(node, scalars, emitted));
                linalg::YieldOp::create(nested, loc, yielded);
              });
  for (auto [node, value] : llvm::zip(nodes, op.getResults()))
    values[node] = value;
}

static double neutralOf(Combiner combiner) {
  double infinity = std::numeric_limits<double>::infinity();
  switch (combiner) {
  case Combiner::Add:
    return 0;
  case Combiner::Maximum:
    return -infinity;
  case Combiner::Minimum:
    return infinity;
  }
  llvm_unreachable("unknown combiner");
}

static Value combine(Scalars &s, Combiner combiner, Value a, Value b) {
  if (!isa<FloatType>(a.getType()))
    return s.create<arith::AddIOp>(a, b);
  switch (combiner) {
  case Combiner::Add:
    return s.add(a, b);
  case Combiner::Maximum:
    return s.create<arith::MaximumFOp>(a, b);
  case Combiner::Minimum:
    return s.create<arith::MinimumFOp>(a, b);
  }
  llvm_unreachable("unknown combiner");
}

void KernelWriter::writeReduction(Node *node) {
  bool isOfRows = node->kind == Node::Kind::RowReduction;
  Loops loops{isOfRows ? Loops::RowReduction : Loops::ColumnReduction};
  Reads reads;
  findReads(node, reads);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  addInputs(reads, loops, inputs, maps);
  maps.push_back(loops.mapOf(node->place, builder.getContext()));
  Value start =
      zeros(shapeOf(node->place), node->type, neutralOf(node->combiner));
  linalg::GenericOp op =
      generic(inputs, start, maps, loops.iterators(),
              [&](OpBuilder &nested, ValueRange arguments) {
                Scalars scalars(nested, loc, loops.columnLoop());
                llvm::DenseMap<Node *, Value> emitted = reads.inBody(arguments);
                Value element = emit(node->inputs.front(), scalars, emitted);
                Value joined =
                    combine(scalars, node->combiner, arguments.back(), element);
                linalg::YieldOp::create(nested, loc, joined);
              });
  values[node] = op.getResult(0);
}
