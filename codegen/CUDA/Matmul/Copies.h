//===- Copies.h - from global memory into a stage of the ring ---*- C++ -*-===//
//
// Each thread copies a few pieces of a tile: cp.async of 16, 8 or 4 bytes,
// whichever divides the operand's rows, and plain loads and stores of single
// elements where not even 4 does. What lies outside the operand arrives as
// zero.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_COPIES_H
#define MP_CODEGEN_CUDA_MATMUL_COPIES_H

#include "codegen/CUDA/Matmul/SharedTile.h"

namespace mlir::mp::cuda {

/// Bytes of the pieces in which rows of `elements` are copied.
int64_t pieceBytes(int64_t elements, int64_t elementBytes,
                   int64_t tileElements);

class OperandCopy {
public:
  /// Computes what does not depend on the step. `steps` end at `end`.
  OperandCopy(Frame &frame, const SharedTile &tile, Value end);

  /// Starts the copies of step `step` (i32) into the stage at byte `stage`.
  void issue(Value step, Value stage);

private:
  /// One piece of this thread.
  struct Piece {
    int64_t row;  ///< rows behind the thread's first
    Value column; ///< first byte in its row
    Value shared; ///< bytes from the tile's start
    Value inside; ///< in range along m or n; null if always
  };

  void makePieces();
  Value insideOf(const Piece &piece);
  Value insideOfK(const Piece &piece, Value first);
  Value globalAddress(Value step);
  void copy(const Piece &piece, Value global, Value shared, Value condition);

  Frame &frame;
  KernelBuilder &b;
  SharedTile tile;
  Value end;
  int64_t width;     ///< bytes of a piece
  int64_t rowStride; ///< bytes of a row in global memory
  Value firstRow;    ///< of this thread in the tile
  Value base;        ///< of the operand's matrix, at the block's tile
  Value mayCopy;     ///< whether this thread copies at all; null if all do
  SmallVector<Piece> pieces;
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_COPIES_H
