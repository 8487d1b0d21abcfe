//===- RegionGraph.cpp - from operations to nodes -------------------------===//

#include "codegen/Lower/RegionGraph.h"
#include "codegen/Lower/Pointwise.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

/// Transposed values are the same elements at the same row and column.
Place GraphBuilder::placeOf(Value value) const {
  Place place = places.lookup(value).value_or(Place::Element);
  return place == Place::Transposed ? Place::Element : place;
}

Node *GraphBuilder::nodeOf(Value value) {
  if (Node *node = nodes.lookup(value))
    return node;
  auto argument = cast<BlockArgument>(value);
  return nodes[value] = graph.argument(argument.getArgNumber(), placeOf(value),
                                       elementTypeOf(value));
}

void GraphBuilder::addConstant(Operation *op) {
  StringRef name = regionOpName(op);
  double value = name.starts_with("aten.ones") ? 1 : 0;
  for (StringRef argument : {"fill_value", "s"})
    value = numberOf(op, argument).value_or(value);
  Type type = elementTypeOf(op->getResult(0));
  nodes[op->getResult(0)] =
      graph.compute(Place::Scalar, type, {}, [=](Scalars &s, ValueRange) {
        return s.number(type, value);
      });
}

void GraphBuilder::addPointwise(Operation *op) {
  SmallVector<Node *> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(nodeOf(operand));
  Value result = op->getResult(0);
  Node *node = graph.compute(placeOf(result), elementTypeOf(result), inputs,
                             [op](Scalars &s, ValueRange operands) {
                               return emitPointwise(op, s, operands);
                             });
  node->isConversion = isa<CastOp, RoundOp>(op);
  nodes[result] = node;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The operand of the region behind transpositions.
bool GraphBuilder::findFactor(Value value, Factor &factor) const {
  factor.isTransposed = false;
  while (Operation *op = value.getDefiningOp()) {
    if (regionRoleOf(op) != RegionRole::Transpose)
      return false;
    factor.isTransposed = !factor.isTransposed;
    value = op->getOperand(0);
  }
  factor.argument = cast<BlockArgument>(value).getArgNumber();
  return true;
}

bool GraphBuilder::addMatmul(MatmulOp op) {
  if (!findFactor(op.getLhs(), graph.lhs) ||
      !findFactor(op.getRhs(), graph.rhs))
    return false;
  graph.depth = op.getLhs().getType().getShape().back();
  Type f32 = Float32Type::get(op.getContext());
  graph.nodes.push_back({Node::Kind::Accumulator, Place::Element, f32});
  Node *sum = graph.accumulator = &graph.nodes.back();
  if (op.getBias())
    sum = graph.compute(
        Place::Element, f32, {sum, graph.convert(nodeOf(op.getBias()), f32)},
        [](Scalars &s, ValueRange v) { return s.add(v[0], v[1]); });
  set(op.getOutput(), sum);
  return true;
}

/// A sum of a factor, perhaps transposed, over the product's own dimension.
bool GraphBuilder::addFactorSum(Operation *op) {
  Factor factor;
  if (regionOpName(op) != "aten.sum" || places.lookup(op->getOperand(0)) ||
      !findFactor(op->getOperand(0), factor))
    return false;
  bool isLhs = placeOf(op->getResult(0)) == Place::Row;
  const Factor &own = isLhs ? graph.lhs : graph.rhs;
  if (own.argument != factor.argument)
    return false;
  sums[op->getResult(0)] = {factor.argument, isLhs,
                            elementTypeOf(op->getResult(0))};
  return true;
}

//===----------------------------------------------------------------------===//
// The whole body
//===----------------------------------------------------------------------===//

bool GraphBuilder::add(Operation *op) {
  switch (regionRoleOf(op)) {
  case RegionRole::None:
    return false;
  case RegionRole::Matmul:
    return addMatmul(cast<MatmulOp>(op));
  case RegionRole::Pointwise:
    if (!pointwiseEmitterOf(op))
      return false;
    addPointwise(op);
    return true;
  case RegionRole::Constant:
    addConstant(op);
    return true;
  case RegionRole::Transpose:
    // In front of a factor, which is found from behind.
    if (!places.lookup(op->getOperand(0)))
      return true;
    nodes[op->getResult(0)] = nodeOf(op->getOperand(0));
    return true;
  case RegionRole::View:
    if (auto sum = sums.find(op->getOperand(0)); sum != sums.end()) {
      FactorSum copy = sum->second;
      sums[op->getResult(0)] = copy;
      return true;
    }
    nodes[op->getResult(0)] = nodeOf(op->getOperand(0));
    return true;
  case RegionRole::Reduction:
    if (region.getKind() == KernelKind::matmul && addFactorSum(op))
      return true;
    return expandRows(op, *this);
  case RegionRole::RowIndexed:
  case RegionRole::Rows:
    return expandRows(op, *this);
  }
  llvm_unreachable("unknown role");
}

bool GraphBuilder::addResults(std::string &reason) {
  for (Value value : region.getYielded()) {
    GraphResult result;
    result.type = cast<RankedTensorType>(value.getType());
    if (auto sum = sums.find(value); sum != sums.end())
      result.sum = sum->second;
    else
      result.node = nodeOf(value);
    if (result.node && result.node->kind == Node::Kind::Argument) {
      reason = "one of its results is an operand";
      return false;
    }
    graph.results.push_back(result);
  }
  return true;
}

std::unique_ptr<NodeGraph> GraphBuilder::build(std::string &reason) {
  for (Operation &op : region.getBody().front().without_terminator())
    if (!add(&op)) {
      reason = (regionOpName(&op) + " has no expansion").str();
      return nullptr;
    }
  if (!addResults(reason))
    return nullptr;
  return std::make_unique<NodeGraph>(std::move(graph));
}
