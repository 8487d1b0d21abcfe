//===- ColumnSums.h - sums over m of the epilogue's results -----*- C++ -*-===//
//
// A lane adds up the runs that it stores: f32, one number for each column of
// its runs. Then the lanes of a warp that have the same columns add theirs,
// then the warps of a block, then, in the last block of a column of tiles, the
// blocks: each time in a fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_COLUMNSUMS_H
#define MP_CODEGEN_CUDA_MATMUL_COLUMNSUMS_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

class ColumnSums {
public:
  explicit ColumnSums(Frame &frame);

  bool empty() const { return sums.empty(); }
  size_t size() const { return sums.size(); }
  /// Zeros for the runs of one column, a vector for each sum.
  SmallVector<Value> start(int64_t width);
  /// `totals` plus one run.
  SmallVector<Value> add(ValueRange totals, ValueRange yielded);
  /// Adds the lanes of a warp and leaves the totals in shared memory. `column`
  /// is that of the lane's runs in the tile; `lanes` have a row among them.
  void leave(ValueRange totals, Value column, int64_t lanes);
  /// Adds the warps and the blocks, and stores the results.
  void finish();

private:
  Value address(size_t sum, Value warpRow, Value column);
  Value shuffleAdd(Value total, int64_t lanes);
  void forColumns(llvm::function_ref<void(Value column)> body);
  Value addWarps(size_t sum, Value column);
  void addBlocks();
  Value addRowTiles(size_t sum, Value column);
  void storeResult(size_t sum, Value column, Value total);

  Frame &frame;
  KernelBuilder &b;
  SmallVector<SideSum> sums;
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_COLUMNSUMS_H
