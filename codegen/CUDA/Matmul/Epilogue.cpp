//===- Epilogue.cpp - from accumulators to the kernel's results -----------===//

#include "codegen/CUDA/Matmul/Epilogue.h"
#include "codegen/CUDA/Matmul/ColumnSums.h"
#include "codegen/CUDA/Matmul/Runs.h"
#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

namespace {
/// The runs that a lane takes from one place of a row on, in all rows.
struct RunColumn {
  Value inWarp;   ///< first column, in the warp's part of the tile
  Value isInside; ///< whether it lies in the result; null if always
  std::optional<RunEmitter> emitter;
  SmallVector<Value> totals; ///< of the column sums
};

class Epilogue {
public:
  Epilogue(Frame &frame, const Accumulators &accumulators);
  void emit();

private:
  void makeColumns();
  void writeSlab(int64_t slab);
  void emitRuns(int64_t slab, RunColumn &column);
  SmallVector<Value> emitGuarded(RunColumn &column, Value inSlab, Value row,
                                 ValueRange totals);
  SmallVector<Value> emitPair(RunColumn &column, ArrayRef<Value> inSlab,
                              ArrayRef<Value> rows, ValueRange totals);
  SmallVector<Value> finishRun(RunColumn &column, const RunEmitter::Run &run,
                               Value inSlab, ValueRange totals);
  Value loadAccumulators(RunColumn &column, Value inSlab);
  Value isInside(RunColumn &column, Value row);

  Frame &frame;
  KernelBuilder &b;
  const Accumulators &accumulators;
  SharedPlan plan;
  int64_t lanesPerRow; ///< that share a row; more than 32 if one run is not all
  int64_t rowsAtOnce;
  Value area, laneRow;
  SmallVector<RunColumn> columns;
  ColumnSums sums;
};
} // namespace

Epilogue::Epilogue(Frame &frame, const Accumulators &accumulators)
    : frame(frame), b(frame.b), accumulators(accumulators),
      plan(planShared(frame.kernel, frame.schedule)), sums(frame) {
  lanesPerRow = frame.schedule.warpN / plan.width;
  rowsAtOnce = std::max<int64_t>(1, 32 / lanesPerRow);
  area = b.offset(frame.shared, b.mul(frame.warp, plan.warpBytes));
  laneRow = lanesPerRow < 32 ? b.div(frame.lane, lanesPerRow) : b.i32(0);
  makeColumns();
}

void Epilogue::makeColumns() {
  int64_t lanes = std::min<int64_t>(32, lanesPerRow);
  Value first = b.mul(b.rem(frame.lane, lanes), plan.width);
  Value warpStart =
      b.add(frame.tile.column, b.mul(frame.warpColumn, frame.schedule.warpN));
  for (int64_t i = 0; i * lanes < lanesPerRow; ++i) {
    RunColumn column;
    column.inWarp = b.add(first, i * lanes * plan.width);
    Value inResult = b.add(warpStart, column.inWarp);
    if (!frame.n.isMultipleOf(frame.schedule.blockN))
      column.isInside = b.isLess(inResult, frame.n.value);
    column.emitter.emplace(frame, plan.width, inResult, column.isInside);
    column.totals = sums.start(plan.width);
    columns.push_back(std::move(column));
  }
}

/// Stores the accumulators of a slab's rows into the warp's area. Columns 8 j +
/// 2 t and the next: see SharedPlan::halfBytes.
void Epilogue::writeSlab(int64_t slab) {
  Value g = b.div(frame.lane, 4), t = b.rem(frame.lane, 4);
  Value inRow = plan.halfBytes ? b.add(b.mul(b.div(t, 2), plan.halfBytes),
                                       b.mul(b.rem(t, 2), 8))
                               : b.mul(t, 8);
  Value lane = b.offset(area, b.add(b.mul(g, plan.rowBytes), inRow));
  int64_t perFragment = plan.halfBytes ? 16 : 32;
  auto pair = VectorType::get(2, b.getF32Type());
  for (int64_t i = 0; i < plan.slab; ++i)
    for (int64_t column = 0; column < accumulators.columns; ++column) {
      ValueRange values = accumulators.at(slab * plan.slab + i, column);
      for (int64_t half = 0; half < 2; ++half) {
        Value both =
            vector::FromElementsOp::create(b, pair, values.slice(2 * half, 2));
        int64_t row = 16 * i + 8 * half;
        b.store(both,
                b.offset(lane, row * plan.rowBytes + perFragment * column), 8);
      }
    }
}

Value Epilogue::loadAccumulators(RunColumn &column, Value inSlab) {
  Value row = b.offset(area, b.mul(inSlab, plan.rowBytes));
  if (!plan.halfBytes)
    return b.load(VectorType::get(plan.width, b.getF32Type()),
                  b.offset(row, b.mul(column.inWarp, 4)),
                  std::min<int64_t>(16, 4 * plan.width));
  auto four = VectorType::get(4, b.getF32Type());
  Value address = b.offset(row, b.mul(column.inWarp, 2));
  Value low = b.load(four, address, 16);
  Value high = b.load(four, b.offset(address, plan.halfBytes), 16);
  return vector::ShuffleOp::create(b, low, high,
                                   ArrayRef<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

SmallVector<Value> Epilogue::finishRun(RunColumn &column,
                                       const RunEmitter::Run &run, Value inSlab,
                                       ValueRange totals) {
  Value accumulator = loadAccumulators(column, inSlab);
  SmallVector<Value> yielded = column.emitter->finish(run, accumulator);
  return sums.add(totals, yielded);
}

Value Epilogue::isInside(RunColumn &column, Value row) {
  Value rowInside;
  if (!frame.m.isMultipleOf(frame.schedule.blockM))
    rowInside = b.isLess(row, frame.m.value);
  return b.andOf(rowInside, column.isInside);
}

SmallVector<Value> Epilogue::emitGuarded(RunColumn &column, Value inSlab,
                                         Value row, ValueRange totals) {
  Value condition = isInside(column, row);
  if (!condition)
    return finishRun(column, column.emitter->load(row), inSlab, totals);
  auto guarded = scf::IfOp::create(b, totals.getTypes(), condition,
                                   /*withElseRegion=*/!totals.empty());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(guarded.thenBlock());
  auto added = finishRun(column, column.emitter->load(row), inSlab, totals);
  if (totals.empty())
    return {};
  scf::YieldOp::create(b, added);
  b.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(b, totals);
  return SmallVector<Value>(guarded.getResults());
}

/// Emits all rows of a slab. Two runs at a time, so that more than one load is
/// under way.
void Epilogue::emitRuns(int64_t slab, RunColumn &column) {
  int64_t passes = plan.slabRows() / rowsAtOnce;
  int64_t unroll = passes % 2 ? 1 : 2;
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(passes), b.i32(unroll),
                                 column.totals);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first =
      b.add(b.add(frame.tile.row, b.mul(frame.warpRow, frame.schedule.warpM)),
            slab * plan.slabRows());
  SmallVector<Value> inSlab, rows;
  for (int64_t i = 0; i < unroll; ++i) {
    Value pass = b.add(loop.getInductionVar(), i);
    inSlab.push_back(b.add(b.mul(pass, rowsAtOnce), laneRow));
    rows.push_back(b.add(first, inSlab.back()));
  }
  SmallVector<Value> totals =
      emitPair(column, inSlab, rows, loop.getRegionIterArgs());
  if (!totals.empty())
    scf::YieldOp::create(b, totals);
  column.totals.assign(loop.result_begin(), loop.result_end());
}

/// Runs without a guard are read together before the first is computed.
SmallVector<Value> Epilogue::emitPair(RunColumn &column, ArrayRef<Value> inSlab,
                                      ArrayRef<Value> rows, ValueRange before) {
  SmallVector<Value> totals(before);
  if (isInside(column, rows.front())) {
    for (auto [at, row] : llvm::zip(inSlab, rows))
      totals = emitGuarded(column, at, row, totals);
    return totals;
  }
  SmallVector<RunEmitter::Run> runs;
  for (Value row : rows)
    runs.push_back(column.emitter->load(row));
  for (auto [at, run] : llvm::zip(inSlab, runs))
    totals = finishRun(column, run, at, totals);
  return totals;
}

void Epilogue::emit() {
  int64_t slabs = accumulators.rows / plan.slab;
  for (int64_t slab = 0; slab < slabs; ++slab) {
    if (slab)
      b.syncWarp(); // The area's last rows have been read.
    writeSlab(slab);
    b.syncWarp();
    for (RunColumn &column : columns)
      emitRuns(slab, column);
  }
  if (sums.empty())
    return;
  for (RunColumn &column : columns)
    sums.leave(column.totals, column.inWarp,
               std::min<int64_t>(32, lanesPerRow));
  sums.finish();
}

void cuda::emitEpilogue(Frame &frame, const Accumulators &accumulators) {
  const MatmulKernel &kernel = frame.kernel;
  if (kernel.epilogue || kernel.accumulatorResult)
    Epilogue(frame, accumulators).emit();
}
