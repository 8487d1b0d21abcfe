//===- RowPlan.h - which sweep over a row does what -------------*- C++ -*-===//
//
// A row is read in sweeps. A sweep needs what earlier sweeps have reduced; it
// reduces, stores and adds up whatever can be known by then. The level of a
// value is the number of sweeps that must be over before it can be computed.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_KERNEL_ROWPLAN_H
#define MP_CODEGEN_KERNEL_ROWPLAN_H

#include "codegen/Kernel/Kernel.h"

namespace mlir::mp {

/// A value that goes to memory.
struct RowStore {
  Value value;
  /// The result of the kernel.
  unsigned result;
  Access access;
};

/// What one read of a row does.
struct Sweep {
  SmallVector<const RowStage *> reductions;
  SmallVector<RowStore> stores; ///< elements
  SmallVector<const RowStage *> columnSums;
};

struct RowPlan {
  SmallVector<Sweep> sweeps;
  SmallVector<RowStore> rowStores, columnStores;
  /// All column reductions, in the order of their partial sums.
  SmallVector<const RowStage *> columnSums;
  /// The stage that makes a value; none for an argument.
  llvm::DenseMap<Value, const RowStage *> stages;
  /// What of each element waits for a later sweep, in units of 16 bits, if
  /// nothing is read or computed twice.
  int64_t keptHalves = 0;

  bool hasRowReductions() const;
  unsigned levelOf(Value value) const;

  llvm::DenseMap<Value, unsigned> levels;
};

/// The inputs of a stage, each with what it depends on.
SmallVector<std::pair<Value, Access>> inputsOf(const RowStage &stage);
/// What a stage makes.
ResultRange resultsOf(const RowStage &stage);

/// The value with which a reduction by `combiner` starts.
TypedAttr neutralOf(Operation *combiner);

/// Orders the work; an error names what no emitter can do.
FailureOr<RowPlan> planRows(const RowKernel &kernel);

} // namespace mlir::mp

#endif // MP_CODEGEN_KERNEL_ROWPLAN_H
