//===- Frame.h - what the parts of a matmul kernel share --------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_MATMUL_FRAME_H
#define MP_CODEGEN_CUDA_MATMUL_FRAME_H

#include "codegen/CUDA/Builder.h"
#include "codegen/CUDA/Schedule.h"

namespace mlir::mp::cuda {

/// An extent of the problem: a number if it is known, and always a value (i32).
struct Size {
  int64_t fixed = ShapedType::kDynamic;
  Value value;

  bool isMultipleOf(int64_t unit) const {
    return !ShapedType::isDynamic(fixed) && fixed % unit == 0;
  }
};

/// Which part of the result a block computes, and over which steps of k.
struct Tile {
  Value row, column;           ///< first element of the block's tile
  Value rowTile, columnTile;   ///< numbers of the tile
  Value rowTiles, columnTiles; ///< how many there are
  Value batch;                 ///< i64
  Value split;                 ///< number among the blocks of one tile
  Value number;                ///< of the tile among all, the batch included
  Value block;                 ///< number of the block
};

/// The values that stand at the top of the kernel, and what the kernel is.
struct Frame {
  Frame(KernelBuilder &b, const MatmulKernel &kernel,
        const MatmulSchedule &schedule)
      : b(b), kernel(kernel), schedule(schedule) {}

  KernelBuilder &b;
  const MatmulKernel &kernel;
  const MatmulSchedule &schedule;

  SmallVector<Value> arguments, results; ///< pointers to global memory
  Value workspace;                       ///< null if there is none
  Value shared;
  Size batch, m, n, k;

  Value thread, lane, warp;
  Value warpRow, warpColumn; ///< number of the warp in its block
  Tile tile;

  int64_t elementBytes() const;
  int64_t warpRows() const { return schedule.blockM / schedule.warpM; }
  int64_t warpColumns() const { return schedule.blockN / schedule.warpN; }
};

/// Bytes of an element in memory; an i1 takes one.
int64_t bytesOf(Type element);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_FRAME_H
