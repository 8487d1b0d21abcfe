//===- Groups.h - which part of a model an operation is of -----*- C++ -*-===//

#ifndef MP_PASSES_POLICY_GROUPS_H
#define MP_PASSES_POLICY_GROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Policy/Policy.h"

namespace mlir::mp {

/// The group of each operation of a function, by the rows of Groups.def and, in
/// models whose modules have other names, by what the graph shows: products
/// around an attention or an activation, additions to the residual stream, a
/// softmax in front of a loss, what leads to the choice of experts. Linear in
/// the size of the graph.
class GroupMap {
public:
  explicit GroupMap(func::FuncOp func);

  Group of(Operation *op) const;

private:
  using Label = std::optional<Group>;

  void labelByTable(Operation *op);
  void labelResidual(Operation *op);
  void labelAround(Operation *op);
  void labelRouting(Operation *op);
  void labelLosses(Operation *op);
  void spreadBack(Value value, Group group, Label over = {});
  void spreadForward(Value value, Group group);
  bool take(Operation *op, Group group, Label over = {});
  Label labelOf(Operation *op) const;

  llvm::DenseMap<Operation *, Group> groups;
  llvm::DenseMap<const void *, Label> ofPath;
};

/// The group that a module path names.
std::optional<Group> groupOfPath(llvm::StringRef path);

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_GROUPS_H
