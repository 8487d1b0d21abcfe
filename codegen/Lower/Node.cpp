//===- Node.cpp - a region as arithmetic on scalars -----------------------===//

#include "codegen/Lower/Node.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

Node *NodeGraph::argument(unsigned number, Place place, Type type) {
  for (Node &node : nodes)
    if (node.kind == Node::Kind::Argument && node.argument == number &&
        node.place == place)
      return &node;
  nodes.push_back({Node::Kind::Argument, place, type, {}, {}, {}, number});
  return &nodes.back();
}

Node *NodeGraph::compute(Place place, Type type, ArrayRef<Node *> inputs,
                         Node::Emit emit) {
  nodes.push_back({Node::Kind::Compute, place, type,
                   SmallVector<Node *, 4>(inputs), std::move(emit)});
  return &nodes.back();
}

Node *NodeGraph::convert(Node *node, Type type) {
  if (node->type == type)
    return node;
  Node *converted =
      compute(node->place, type, {node}, [type](Scalars &s, ValueRange v) {
        return s.convert(v[0], type);
      });
  converted->isConversion = true;
  return converted;
}

Node *NodeGraph::reduceRows(Node *node, Combiner combiner, Type type) {
  Node *input = convert(node, type);
  nodes.push_back(
      {Node::Kind::RowReduction, Place::Row, type, {input}, {}, combiner});
  return &nodes.back();
}

Node *NodeGraph::sumColumns(Node *node) {
  Type f32 = Float32Type::get(node->type.getContext());
  Node *input = convert(node, f32);
  nodes.push_back({Node::Kind::ColumnReduction, Place::Column, f32, {input}});
  return &nodes.back();
}
