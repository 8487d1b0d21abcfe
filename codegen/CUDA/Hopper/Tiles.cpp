//===- Tiles.cpp - which tile a block computes ----------------------------===//
//
// Blocks are numbered along x. Blocks that run at the same time share rows of
// lhs and columns of rhs in the L2 cache if they stand close together, so they
// go through groups of a few rows of tiles, column by column.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

/// Rows of tiles in a group.
static constexpr int kGroup = 8;

static Value emitExtent(Emission &e, const Extent &extent) {
  if (extent.size < 0)
    return e.i32(extent.factor);
  Value size = arith::TruncIOp::create(e.b, e.b.getI32Type(), e.size);
  return e.mul(size, e.i32(extent.factor));
}

static Value tilesOf(Emission &e, Value extent, int tile) {
  return e.div(e.add(extent, e.i32(tile - 1)), e.i32(tile));
}

static void emitExtents(Emission &e) {
  e.m = emitExtent(e, e.plan.m);
  e.n = emitExtent(e, e.plan.n);
  e.k = emitExtent(e, e.plan.k);
  e.batch = emitExtent(e, e.plan.batch);
  e.steps = tilesOf(e, e.k, kStep);
}

void hopper::emitTile(Emission &e) {
  emitExtents(e);
  Value rows = tilesOf(e, e.m, e.schedule.blockM());
  Value columns = tilesOf(e, e.n, e.schedule.blockN);
  Value tiles = e.mul(rows, columns);
  Value block = NVVM::BlockIdXOp::create(e.b, e.b.getI32Type());
  e.tile.batch = e.plan.isBatchedKernel() ? e.div(block, tiles) : e.i32(0);
  Value number = e.plan.isBatchedKernel() ? e.rem(block, tiles) : block;

  Value perGroup = e.mul(columns, e.i32(kGroup));
  Value firstRow = e.mul(e.div(number, perGroup), e.i32(kGroup));
  Value height = e.min(e.sub(rows, firstRow), e.i32(kGroup));
  Value inGroup = e.rem(number, perGroup);
  Value row = e.add(firstRow, e.rem(inGroup, height));
  Value column = e.div(inGroup, height);
  e.tile.m = e.mul(row, e.i32(e.schedule.blockM()));
  e.tile.n = e.mul(column, e.i32(e.schedule.blockN));
}
