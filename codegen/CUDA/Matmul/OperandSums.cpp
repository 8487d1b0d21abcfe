//===- OperandSums.cpp - sums over k of the operands ----------------------===//
//
// mma.sync has multiplied the operand with ones: every column (lhs) or row
// (rhs) of an accumulator holds the sum. The tiles of the first column (row)
// store it.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Matmul/Epilogue.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

namespace {
/// Where a lane's part of a sum goes.
struct Stored {
  Value start;  ///< the lane's first position in the result
  Value extent; ///< of the result
};
} // namespace

static void storeSum(Frame &frame, const SideSum &sum, const Stored &stored,
                     int64_t behind, Value total) {
  KernelBuilder &b = frame.b;
  Value position = b.add(stored.start, behind);
  auto inside = scf::IfOp::create(b, b.isLess(position, stored.extent),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(inside.thenBlock());
  if (!sum.element.isF32())
    total = arith::TruncFOp::create(b, sum.element, total);
  int64_t bytes = bytesOf(sum.element);
  Value address =
      b.offset(frame.results[sum.result], b.mul(b.toI64(position), bytes));
  b.store(total, address, bytes);
}

/// Rows g and g + 8 of each fragment; the lanes t = 0 have them.
static void storeLhs(Frame &frame, const SideSum &sum,
                     const Accumulators &accumulators) {
  KernelBuilder &b = frame.b;
  Value start =
      b.add(b.add(frame.tile.row, b.mul(frame.warpRow, frame.schedule.warpM)),
            b.div(frame.lane, 4));
  Stored stored{start, frame.m.value};
  for (int64_t row = 0; row < accumulators.rows; ++row) {
    ValueRange values = accumulators.lhsSum(row);
    storeSum(frame, sum, stored, 16 * row, values[0]);
    storeSum(frame, sum, stored, 16 * row + 8, values[2]);
  }
}

/// Columns 2t and 2t + 1 of each fragment; the lanes g = 0 have them.
static void storeRhs(Frame &frame, const SideSum &sum,
                     const Accumulators &accumulators) {
  KernelBuilder &b = frame.b;
  Value start = b.add(
      b.add(frame.tile.column, b.mul(frame.warpColumn, frame.schedule.warpN)),
      b.mul(b.rem(frame.lane, 4), 2));
  Stored stored{start, frame.n.value};
  for (int64_t column = 0; column < accumulators.columns; ++column) {
    ValueRange values = accumulators.rhsSum(column);
    storeSum(frame, sum, stored, 8 * column, values[0]);
    storeSum(frame, sum, stored, 8 * column + 1, values[1]);
  }
}

/// Whether this lane stores: one tile, one warp and the lanes that differ.
static Value isStoring(Frame &frame, bool isLhs) {
  KernelBuilder &b = frame.b;
  Value tile = isLhs ? frame.tile.columnTile : frame.tile.rowTile;
  Value warp = isLhs ? frame.warpColumn : frame.warpRow;
  Value lane = isLhs ? b.rem(frame.lane, 4) : b.div(frame.lane, 4);
  Value zero = b.i32(0);
  return b.andOf(b.andOf(b.isEqual(tile, zero), b.isEqual(warp, zero)),
                 b.isEqual(lane, zero));
}

void cuda::storeOperandSums(Frame &frame, const Accumulators &accumulators) {
  KernelBuilder &b = frame.b;
  for (const SideSum &sum : frame.kernel.sums) {
    if (sum.over == SideSum::Over::ResultOverM)
      continue;
    bool isLhs = sum.over == SideSum::Over::LhsOverK;
    auto storing = scf::IfOp::create(b, isStoring(frame, isLhs),
                                     /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(storing.thenBlock());
    if (isLhs)
      storeLhs(frame, sum, accumulators);
    else
      storeRhs(frame, sum, accumulators);
  }
}
