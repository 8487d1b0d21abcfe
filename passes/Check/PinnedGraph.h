//===- PinnedGraph.h - what must keep its type, found anew -----*- C++ -*-===//

#ifndef MP_PASSES_CHECK_PINNEDGRAPH_H
#define MP_PASSES_CHECK_PINNEDGRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace mlir::mp::check {

/// The operators of a function by node. Conversions and stores, which passes
/// make of other nodes, are none.
class OperatorsByNode {
public:
  explicit OperatorsByNode(func::FuncOp func);

  /// The only operator of that node; null if there is none, or several.
  Operation *lookup(int64_t node) const { return operators.lookup(node); }
  /// The node of an operator, or -1.
  int64_t nodeOf(Operation *op) const;

private:
  llvm::DenseMap<int64_t, Operation *> operators;
  llvm::DenseMap<Operation *, int64_t> nodes;
};

/// A copy of a function in the form in which passes choose types, with pins.
class PinnedGraph {
public:
  PinnedGraph(func::FuncOp func, Half half);

  /// Null if the passes that pin fail.
  func::FuncOp getFunction() const { return copy; }
  /// What became of an operator; null if it cannot be told.
  Operation *lookup(Operation *op) const;
  /// Adds the pins that `after`, a rewrite of the function, carries: they may
  /// come of what was measured.
  void addPinsOf(func::FuncOp after);

private:
  OwningOpRef<ModuleOp> module;
  func::FuncOp copy;
  OperatorsByNode originals;
  std::optional<OperatorsByNode> copies;
};

/// "softmax (reason)": a pin to f32 or to the traced type; empty if there is
/// none.
std::string describeWidePin(Value value);
std::string describeWidePin(OpOperand &operand);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_PINNEDGRAPH_H
