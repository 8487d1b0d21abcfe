//===- Workspace.h - what blocks of a kernel tell each other ----*- C++ -*-===//
//
// Blocks that share a sum write their parts to a workspace in global memory and
// count themselves; the last one to arrive adds all parts in a fixed order, so
// that the result has the same bits in every run, and sets the counter back to
// zero. No block waits for another.
//
//   16 bytes of counters for each block of the grid
//   for each block: its accumulators, then its column sums
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_WORKSPACE_H
#define MP_CODEGEN_CUDA_MATMUL_WORKSPACE_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

struct WorkspacePlan {
  static constexpr int64_t kCounterBytes = 16;

  int64_t accumulatorBytes = 0; ///< of one block
  int64_t columnSumBytes = 0;   ///< of one block

  bool isNeeded() const { return dataBytes() != 0; }
  int64_t dataBytes() const { return accumulatorBytes + columnSumBytes; }
  int64_t bytesPerBlock() const {
    return isNeeded() ? kCounterBytes + dataBytes() : 0;
  }
};

WorkspacePlan planWorkspace(const MatmulKernel &kernel,
                            const MatmulSchedule &schedule);

/// The sums over m of the epilogue's results.
SmallVector<SideSum> columnSums(const MatmulKernel &kernel);

/// The address of a block's data.
Value blockData(Frame &frame, Value block);

/// What counters count: the blocks of one tile, or the tiles of one column.
enum class Counter { Splits, ColumnSums };

/// Counts this block among the `count` (i32) that share `index`; true (for all
/// threads) for the last one, which then sees what the others have written.
Value isLastToArrive(Frame &frame, Counter counter, Value index, Value count);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_WORKSPACE_H
