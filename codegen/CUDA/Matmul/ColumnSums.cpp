//===- ColumnSums.cpp - sums over m of the epilogue's results -------------===//

#include "codegen/CUDA/Matmul/ColumnSums.h"
#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "codegen/CUDA/Matmul/Workspace.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

ColumnSums::ColumnSums(Frame &frame)
    : frame(frame), b(frame.b), sums(columnSums(frame.kernel)) {}

SmallVector<Value> ColumnSums::start(int64_t width) {
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(VectorType::get(width, b.getF32Type())));
  return SmallVector<Value>(sums.size(), zero);
}

SmallVector<Value> ColumnSums::add(ValueRange totals, ValueRange yielded) {
  SmallVector<Value> result;
  for (auto [sum, total] : llvm::zip(sums, totals)) {
    Value run = yielded[sum.yielded];
    if (run.getType() != total.getType())
      run = arith::ExtFOp::create(b, total.getType(), run);
    result.push_back(arith::AddFOp::create(b, total, run));
  }
  return result;
}

Value ColumnSums::address(size_t sum, Value warpRow, Value column) {
  int64_t base = planShared(frame.kernel, frame.schedule).columnSums;
  int64_t perSum = frame.warpRows() * frame.schedule.blockN;
  Value index = b.add(b.mul(warpRow, frame.schedule.blockN), column);
  return b.offset(b.offset(frame.shared, b.mul(index, 4)),
                  base + 4 * static_cast<int64_t>(sum) * perSum);
}

/// The sum over the lanes of a warp whose numbers are equal modulo `lanes`.
Value ColumnSums::shuffleAdd(Value total, int64_t lanes) {
  auto type = cast<VectorType>(total.getType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value element = vector::ExtractOp::create(b, total, ArrayRef<int64_t>{i});
    for (int64_t distance = lanes; distance < 32; distance *= 2) {
      Value other = NVVM::ShflOp::create(b, b.getF32Type(), b.i32(-1), element,
                                         b.i32(distance), b.i32(31),
                                         NVVM::ShflKind::bfly, UnitAttr());
      element = arith::AddFOp::create(b, element, other);
    }
    elements.push_back(element);
  }
  return vector::FromElementsOp::create(b, type, elements);
}

void ColumnSums::leave(ValueRange totals, Value column, int64_t lanes) {
  SmallVector<Value> added;
  for (Value total : totals)
    added.push_back(shuffleAdd(total, lanes));
  auto isFirst = scf::IfOp::create(b, b.isLess(frame.lane, b.i32(lanes)),
                                   /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isFirst.thenBlock());
  Value inTile = b.add(b.mul(frame.warpColumn, frame.schedule.warpN), column);
  for (auto [i, total] : llvm::enumerate(added)) {
    int64_t width = cast<VectorType>(total.getType()).getNumElements();
    b.store(total, address(i, frame.warpRow, inTile),
            std::min<int64_t>(16, 4 * width));
  }
}

/// Emits `body` for each column of the tile, spread over the threads.
void ColumnSums::forColumns(llvm::function_ref<void(Value column)> body) {
  auto loop = scf::ForOp::create(b, frame.thread, b.i32(frame.schedule.blockN),
                                 b.i32(frame.schedule.threads()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value ColumnSums::addWarps(size_t sum, Value column) {
  Value total;
  for (int64_t row = 0; row < frame.warpRows(); ++row) {
    Value part = b.load(b.getF32Type(), address(sum, b.i32(row), column), 4);
    total = total ? arith::AddFOp::create(b, total, part).getResult() : part;
  }
  return total;
}

void ColumnSums::storeResult(size_t sum, Value column, Value total) {
  Value position = b.add(frame.tile.column, column);
  auto inside = scf::IfOp::create(b, b.isLess(position, frame.n.value),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(inside.thenBlock());
  Type element = sums[sum].element;
  if (!element.isF32())
    total = arith::TruncFOp::create(b, element, total);
  int64_t bytes = bytesOf(element);
  b.store(total,
          b.offset(frame.results[sums[sum].result],
                   b.mul(b.toI64(position), bytes)),
          bytes);
}

/// A block's partial sums lie behind its accumulators.
static Value partialAddress(Frame &frame, Value tile, size_t sum,
                            Value column) {
  KernelBuilder &b = frame.b;
  int64_t before =
      planWorkspace(frame.kernel, frame.schedule).accumulatorBytes +
      4 * static_cast<int64_t>(sum) * frame.schedule.blockN;
  return b.offset(b.offset(blockData(frame, tile), before), b.mul(column, 4));
}

static Value tileAt(Frame &frame, Value rowTile) {
  return frame.b.add(frame.b.mul(rowTile, frame.tile.columnTiles),
                     frame.tile.columnTile);
}

Value ColumnSums::addRowTiles(size_t sum, Value column) {
  auto loop = scf::ForOp::create(b, b.i32(0), frame.tile.rowTiles, b.i32(1),
                                 ValueRange{b.f32(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value tile = tileAt(frame, loop.getInductionVar());
  Value part =
      b.load(b.getF32Type(), partialAddress(frame, tile, sum, column), 4);
  Value total = arith::AddFOp::create(b, loop.getRegionIterArg(0), part);
  scf::YieldOp::create(b, total);
  return loop.getResult(0);
}

void ColumnSums::addBlocks() {
  Value tile = tileAt(frame, frame.tile.rowTile);
  forColumns([&](Value column) {
    for (size_t i = 0; i < sums.size(); ++i)
      b.store(addWarps(i, column), partialAddress(frame, tile, i, column), 4);
  });
  Value isLast = isLastToArrive(frame, Counter::ColumnSums,
                                frame.tile.columnTile, frame.tile.rowTiles);
  auto last = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.thenBlock());
  forColumns([&](Value column) {
    for (size_t i = 0; i < sums.size(); ++i)
      storeResult(i, column, addRowTiles(i, column));
  });
}

void ColumnSums::finish() {
  b.barrier();
  if (planWorkspace(frame.kernel, frame.schedule).columnSumBytes)
    return addBlocks();
  forColumns([&](Value column) {
    for (size_t i = 0; i < sums.size(); ++i)
      storeResult(i, column, addWarps(i, column));
  });
}
