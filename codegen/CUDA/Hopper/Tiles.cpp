//===- Tiles.cpp - which tile a block computes ----------------------------===//
//
// There are as many blocks as run at the same time; each takes every so-many-th
// tile, and loads the next while it stores the last. Tiles that are computed at
// the same time share rows of lhs and columns of rhs in the L2 cache if they
// stand close together, so they are numbered by groups of a few rows of tiles,
// column by column.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

/// Rows of tiles in a group.
static constexpr int64_t kGroup = 8;

static Value emitExtent(Emission &e, const Extent &extent) {
  if (extent.size < 0)
    return e.b.i32(extent.factor);
  Value size = arith::TruncIOp::create(e.b, e.b.getI32Type(), e.size);
  return e.b.mul(size, extent.factor);
}

static Value tilesOf(Emission &e, Value extent, int64_t tile) {
  return e.b.div(e.b.add(extent, tile - 1), tile);
}

void hopper::emitExtents(Emission &e) {
  e.m = emitExtent(e, e.plan.m);
  e.n = emitExtent(e, e.plan.n);
  e.k = emitExtent(e, e.plan.k);
  e.batch = emitExtent(e, e.plan.batch);
  e.steps = tilesOf(e, e.k, kStep);
  e.rowTiles = tilesOf(e, e.m, e.schedule.blockM());
  e.columnTiles = tilesOf(e, e.n, e.schedule.blockN);
  e.tiles = e.b.mul(e.b.mul(e.rowTiles, e.columnTiles), e.batch);
}

static Tile tileOf(Emission &e, Value number) {
  Tile tile;
  tile.batch = e.b.i32(0);
  if (e.plan.isBatchedKernel()) {
    Value perMatrix = e.b.mul(e.rowTiles, e.columnTiles);
    tile.batch = e.b.div(number, perMatrix);
    number = e.b.rem(number, perMatrix);
  }
  Value perGroup = e.b.mul(e.columnTiles, kGroup);
  Value firstRow = e.b.mul(e.b.div(number, perGroup), kGroup);
  Value height = e.b.minOf(e.b.sub(e.rowTiles, firstRow), e.b.i32(kGroup));
  Value inGroup = e.b.rem(number, perGroup);
  Value row = e.b.add(firstRow, e.b.rem(inGroup, height));
  Value column = e.b.div(inGroup, height);
  tile.m = e.b.mul(row, e.schedule.blockM());
  tile.n = e.b.mul(column, e.schedule.blockN);
  return tile;
}

void hopper::forTiles(Emission &e, RingPosition start,
                      llvm::function_ref<RingPosition(RingPosition)> body) {
  Value block = NVVM::BlockIdXOp::create(e.b, e.b.getI32Type());
  Value blocks = NVVM::GridDimXOp::create(e.b, e.b.getI32Type());
  scf::ForOp::create(
      e.b, block, e.tiles, blocks, ValueRange{start.stage, start.parity},
      [&](OpBuilder &, Location, Value number, ValueRange carried) {
        OpBuilder::InsertionGuard guard(e.b);
        e.b.setInsertionPointToEnd(number.getParentBlock());
        e.tile = tileOf(e, number);
        RingPosition next = body({carried[0], carried[1]});
        scf::YieldOp::create(e.b, ValueRange{next.stage, next.parity});
      });
}
