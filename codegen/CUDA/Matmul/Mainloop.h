//===- Mainloop.h - the sum over k ------------------------------*- C++ -*-===//
//
// A ring of stages in shared memory: while the tensor cores work on one step,
// the copies of the next steps are under way. One barrier per step: it says
// both that the next stage has arrived and that all warps have left the stage
// before, which is filled next. The fragments of the next mma step are loaded
// before the products of this one, also across the barrier.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_MAINLOOP_H
#define MP_CODEGEN_CUDA_MATMUL_MAINLOOP_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

/// Sums that mma.sync makes beside the product, of a warp's part of an operand.
struct OperandSums {
  bool lhs = false, rhs = false;
};

/// The accumulators of one warp, four f32 to a fragment: the product's, rows
/// first, then those of the sums (all columns, or rows, alike).
struct Accumulators {
  int64_t rows = 0, columns = 0; ///< in fragments of 16 x 8
  OperandSums sums;
  SmallVector<Value> values;

  ValueRange at(int64_t row, int64_t column) const {
    return ValueRange(values).slice(4 * (row * columns + column), 4);
  }
  ValueRange lhsSum(int64_t row) const {
    return ValueRange(values).slice(4 * (rows * columns + row), 4);
  }
  ValueRange rhsSum(int64_t column) const {
    int64_t before = rows * columns + (sums.lhs ? rows : 0);
    return ValueRange(values).slice(4 * (before + column), 4);
  }
};

/// Emits the loop over the block's steps [first, last). Afterwards no copy is
/// under way and all threads have met, so that the ring is free.
Accumulators emitMainloop(Frame &frame, Value first, Value last,
                          OperandSums sums);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_MAINLOOP_H
