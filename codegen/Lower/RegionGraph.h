//===- RegionGraph.h - from operations to nodes -----------------*- C++ -*-===//

#ifndef MP_CODEGEN_LOWER_REGIONGRAPH_H
#define MP_CODEGEN_LOWER_REGIONGRAPH_H

#include "codegen/Lower/Node.h"

namespace mlir::mp::lower {

/// Builds the nodes of a region's body.
class GraphBuilder {
public:
  GraphBuilder(RegionOp region, Places places)
      : region(region), places(std::move(places)),
        graph(this->places.getSpace()) {}

  /// Null, and a reason, if an operation cannot be expanded.
  std::unique_ptr<NodeGraph> build(std::string &reason);

  /// The node of an operand of an operation.
  Node *nodeOf(Value value);
  NodeGraph &getGraph() { return graph; }
  void set(Value result, Node *node) {
    nodes[result] = graph.convert(node, elementTypeOf(result));
  }

private:
  bool add(Operation *op);
  bool addMatmul(MatmulOp op);
  void addPointwise(Operation *op);
  void addConstant(Operation *op);
  bool addFactorSum(Operation *op);
  bool findFactor(Value value, Factor &factor) const;
  bool addResults(std::string &reason);
  Place placeOf(Value value) const;

  RegionOp region;
  Places places;
  NodeGraph graph;
  llvm::DenseMap<Value, Node *> nodes;
  llvm::DenseMap<Value, FactorSum> sums;
};

/// Expands a reduction, a norm, a softmax, an indexed operation or one of their
/// gradients into nodes. False if its form is not known.
bool expandRows(Operation *op, GraphBuilder &builder);

} // namespace mlir::mp::lower

#endif // MP_CODEGEN_LOWER_REGIONGRAPH_H
