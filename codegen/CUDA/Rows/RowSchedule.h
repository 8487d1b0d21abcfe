//===- RowSchedule.h - how a row kernel is spread over threads --*- C++ -*-===//
//
// A block holds `groups` rows at a time; `threads` threads share a row. Thread
// t of a row has the vectors t, t + threads, ... of it: neighbours in a warp
// read neighbours in memory. A kernel that reduces no row may cut the columns
// into tiles, one block each.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_ROWS_ROWSCHEDULE_H
#define MP_CODEGEN_CUDA_ROWS_ROWSCHEDULE_H

#include "codegen/Kernel/RowPlan.h"

namespace mlir::mp::cuda {

struct RowSchedule {
  /// Elements of one access; divides the columns.
  int64_t vector = 1;
  /// Threads of a row, a power of two; above 32, warps exchange through shared
  /// memory.
  int64_t threads = 32;
  /// Rows that a block works on at a time.
  int64_t groups = 1;
  /// Rows that each group does one after another.
  int64_t steps = 1;
  /// How many of them the loop over rows holds at a time.
  int64_t rowUnroll = 1;
  /// Columns of a block; all unless the kernel reduces no row.
  int64_t tile = 0;
  /// The row is read again in each sweep, instead of staying in registers.
  bool isLooped = false;
  /// Of a looped row: vectors of a thread that are in flight at a time.
  int64_t unroll = 4;

  /// Such as "v8 t32 g4 s1 c3", "looped" where it is.
  std::string str() const;

  /// Threads of a block.
  int64_t blockThreads() const { return threads * groups; }
  /// Rows of a block.
  int64_t blockRows() const { return groups * steps; }
  /// Columns that one vector of each thread of a row covers.
  int64_t slice() const { return threads * vector; }
  /// Vectors of a thread in a tile.
  int64_t chunks() const { return llvm::divideCeil(tile, slice()); }
};

/// A schedule for any kernel: few registers, no spills, full accesses.
RowSchedule chooseRowSchedule(const RowKernel &kernel, const RowPlan &plan);

/// Checks a schedule against a kernel; an error names the field.
LogicalResult verifyRowSchedule(const RowKernel &kernel, const RowPlan &plan,
                                const RowSchedule &schedule);

/// The widest access that rows of the kernel allow: at most 16 bytes for the
/// narrowest element, and aligned in each row.
int64_t widestVector(const RowKernel &kernel, const RowPlan &plan);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_ROWSCHEDULE_H
