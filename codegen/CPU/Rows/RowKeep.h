//===- RowKeep.h - which elements wait for a later sweep --------*- C++ -*-===//
//
// An element that several sweeps read is read again from the result that it was
// stored in, or from a buffer of one row if making it takes long; else it is
// made again.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_ROWS_ROWKEEP_H
#define MP_CODEGEN_CPU_ROWS_ROWKEEP_H

#include "codegen/Kernel/RowPlan.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::mp::cpu {

struct Kept {
  /// The sweep that makes it.
  unsigned sweep;
  /// The result that holds it; none: a buffer does.
  std::optional<unsigned> result;
};

/// In a fixed order. All buffers of a row together are small.
using KeptValues = llvm::MapVector<Value, Kept>;
KeptValues findKept(const RowKernel &kernel, const RowPlan &plan);

/// Elements of a buffer with one for each column: whole vectors.
int64_t paddedColumns(const RowKernel &kernel);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_ROWS_ROWKEEP_H
