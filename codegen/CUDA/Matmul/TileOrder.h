//===- TileOrder.h - which tile a block computes ----------------*- C++ -*-===//
//
// Blocks are numbered along x. `group` rows of tiles are taken together, column
// by column: blocks that run at the same time then read few different rows of
// either operand, which the L2 cache holds. The splits of one tile and the
// matrices of a batch follow one another.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_TILEORDER_H
#define MP_CODEGEN_CUDA_MATMUL_TILEORDER_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

/// Computes `frame.tile`; the extents must be there.
void emitTileOrder(Frame &frame);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_TILEORDER_H
