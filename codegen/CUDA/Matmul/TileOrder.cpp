//===- TileOrder.cpp - which tile a block computes ------------------------===//

#include "codegen/CUDA/Matmul/TileOrder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::mp::cuda;

void mlir::mp::cuda::emitTileOrder(Frame &frame) {
  KernelBuilder &b = frame.b;
  const MatmulSchedule &schedule = frame.schedule;
  Tile &tile = frame.tile;
  tile.block = NVVM::BlockIdXOp::create(b, b.getI32Type());
  tile.rowTiles = b.ceilDiv(frame.m.value, schedule.blockM);
  tile.columnTiles = b.ceilDiv(frame.n.value, schedule.blockN);

  Value tiles = b.mul(tile.rowTiles, tile.columnTiles);
  Value inMatrix = b.rem(tile.block, tiles);
  Value outer = b.div(tile.block, tiles);
  tile.split = b.rem(outer, schedule.splitK);
  Value batch = b.div(outer, schedule.splitK);
  tile.number = b.add(b.mul(batch, tiles), inMatrix);
  tile.batch = frame.batch.fixed == 1 ? b.i64(0) : b.toI64(batch);

  Value perGroup = b.mul(tile.columnTiles, schedule.group);
  Value firstRow = b.mul(b.div(inMatrix, perGroup), schedule.group);
  Value inGroup = b.rem(inMatrix, perGroup);
  Value rows = b.minOf(b.sub(tile.rowTiles, firstRow), b.i32(schedule.group));
  tile.rowTile = b.add(firstRow, b.rem(inGroup, rows));
  tile.columnTile = b.div(inGroup, rows);
  tile.row = b.mul(tile.rowTile, schedule.blockM);
  tile.column = b.mul(tile.columnTile, schedule.blockN);
}
