//===- SplitK.cpp - several blocks for the sum of one tile ----------------===//

#include "codegen/CUDA/Matmul/SplitK.h"
#include "codegen/CUDA/Matmul/Workspace.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Fragments lie one behind the other, 16 bytes for each thread.
static Value threadAddress(Frame &frame, Value block) {
  return frame.b.offset(blockData(frame, block), frame.b.mul(frame.thread, 16));
}

static int64_t fragmentBytes(const Frame &frame) {
  return 16 * frame.schedule.threads();
}

static void writePart(Frame &frame, const Accumulators &accumulators) {
  KernelBuilder &b = frame.b;
  Value address = threadAddress(frame, frame.tile.block);
  auto four = VectorType::get(4, b.getF32Type());
  ValueRange values = accumulators.values;
  for (size_t i = 0; i < values.size(); i += 4) {
    Value fragment =
        vector::FromElementsOp::create(b, four, values.slice(i, 4));
    b.store(
        fragment,
        b.offset(address, static_cast<int64_t>(i / 4) * fragmentBytes(frame)),
        16);
  }
}

/// `totals` plus what a block wrote.
static SmallVector<Value> addPart(Frame &frame, Value block,
                                  ValueRange totals) {
  KernelBuilder &b = frame.b;
  Value address = threadAddress(frame, block);
  auto four = VectorType::get(4, b.getF32Type());
  SmallVector<Value> sums;
  for (auto [i, total] : llvm::enumerate(totals)) {
    Value part = b.load(
        four, b.offset(address, static_cast<int64_t>(i) * fragmentBytes(frame)),
        16);
    sums.push_back(arith::AddFOp::create(b, total, part));
  }
  return sums;
}

static Accumulators addParts(Frame &frame, const Accumulators &own) {
  KernelBuilder &b = frame.b;
  auto four = VectorType::get(4, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(four));
  SmallVector<Value> zeros(own.values.size() / 4, zero);
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(frame.schedule.splitK),
                                 b.i32(1), zeros);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    // The blocks of the splits are as far apart as there are tiles.
    Value tiles = b.mul(frame.tile.rowTiles, frame.tile.columnTiles);
    Value first = b.sub(frame.tile.block, b.mul(frame.tile.split, tiles));
    Value block = b.add(first, b.mul(loop.getInductionVar(), tiles));
    scf::YieldOp::create(b, addPart(frame, block, loop.getRegionIterArgs()));
  }
  Accumulators total = own;
  for (auto [i, fragment] : llvm::enumerate(loop.getResults()))
    for (int64_t j = 0; j < 4; ++j)
      total.values[4 * i + j] =
          vector::ExtractOp::create(b, fragment, ArrayRef<int64_t>{j});
  return total;
}

void cuda::joinSplits(Frame &frame, const Accumulators &accumulators,
                      llvm::function_ref<void(const Accumulators &)> rest) {
  KernelBuilder &b = frame.b;
  writePart(frame, accumulators);
  Value isLast = isLastToArrive(frame, Counter::Splits, frame.tile.number,
                                b.i32(frame.schedule.splitK));
  auto last = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.thenBlock());
  rest(addParts(frame, accumulators));
}
