//===- ColumnFinish.cpp - the last block joins what all have stored -------===//
//
// In two steps, so that no block has to read much: of kFan neighbouring blocks,
// the last one to end joins their sums; of those, the last one joins all. Which
// block that is does not matter: the order of the additions is always the same.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static constexpr int64_t kFan = 16;

/// What this thread has written is seen by other blocks before what follows.
static void fence(ImplicitLocOpBuilder &b) {
  LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel, "device");
}

/// A counter of the region of a block: 0 counts the blocks beside it, 1 (of
/// block 0) those that joined others.
Value RowEmitter::counterOf(Value ofRowBlock, int64_t which) {
  Value block =
      scaled(b, ofRowBlock, 1, arith::MulIOp::create(b, tileBlock, rowBlocks));
  Value index = scaled(b, block, regionWords(), constantOf(b, which));
  return LLVM::GEPOp::create(b, workspace.getType(), b.getI32Type(), workspace,
                             ArrayRef<LLVM::GEPArg>{index});
}

/// Whether `count` blocks have now passed here; the same for all threads.
Value RowEmitter::isLastOf(Value counter, Value count) {
  fence(b);
  gpu::BarrierOp::create(b);
  Value shared = sharedAddress(b, kLast);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        threads.thread, constantOf(b, 0));
  emitIf(b, isFirst, [&] {
    Value passed = LLVM::AtomicRMWOp::create(
        b, LLVM::AtomicBinOp::add, counter, constantOf32(b, 1),
        LLVM::AtomicOrdering::acq_rel, "device");
    storeElements(b, passed, shared, constantOf(b, 0));
  });
  gpu::BarrierOp::create(b);
  Value passed = arith::ExtUIOp::create(
      b, b.getI64Type(),
      loadElements(b, shared, constantOf(b, 0), b.getI32Type(), 1));
  Value last = arith::SubIOp::create(b, count, constantOf(b, 1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, passed, last);
}

/// The sums of the row blocks begin, begin + stride, ... before end.
RowEmitter::Values RowEmitter::joinPartials(Value position, Value begin,
                                            Value end, int64_t stride) {
  Values sums;
  for (const RowStage *stage : plan.columnSums)
    sums.push_back(splatOf(b, neutralOf(stage->combiner), 1));
  auto loop = scf::ForOp::create(b, begin, end, constantOf(b, stride), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values joined;
  for (auto [i, stage] : llvm::enumerate(plan.columnSums)) {
    Value sum = loop.getRegionIterArgs()[i];
    Value part = loadElements(b, workspace,
                              partialIndex(loop.getInductionVar(), i, position),
                              sum.getType(), 1);
    joined.push_back(combine(b, stage->combiner, sum, part));
  }
  scf::YieldOp::create(b, joined);
  return Values(loop.getResults());
}

/// A value of a column; sums are known.
Value RowEmitter::columnValue(Value value, Value column) {
  if (Value known = columnValues.lookup(value))
    return known;
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    return columnValues[value] =
               loadElements(b, pointerOf(value), column, element, 1);
  }
  BodyArguments arguments;
  arguments.contract = kernel.contract;
  arguments.indices = {indicesFrom(b, column, 1)};
  for (auto [input, access] : inputsOf(*stage))
    arguments.values.push_back(
        access == Access::Scalar ? scalar(input) : columnValue(input, column));
  auto results = cloneBody(b, stage->op, arguments);
  for (auto [result, made] : llvm::zip_equal(resultsOf(*stage), results))
    columnValues[result] = made;
  return columnValues[value];
}

void RowEmitter::storeColumns(Value position, ValueRange sums) {
  // From the position back to the column; see ColumnSums.cpp.
  Value slice = constantOf(b, schedule.slice());
  Value inSlice = arith::RemUIOp::create(b, position, slice);
  Value threadCount = constantOf(b, schedule.threads);
  Value thread = arith::RemUIOp::create(b, inSlice, threadCount);
  Value inVector = arith::DivUIOp::create(b, inSlice, threadCount);
  Value start = arith::SubIOp::create(b, position, inSlice);
  Value inTile =
      scaled(b, thread, schedule.vector, scaled(b, inVector, 1, start));
  Value column = scaled(b, tileBlock, schedule.tile, inTile);
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                                       constantOf(b, kernel.columns));
  emitIf(b, exists, [&] {
    columnValues.clear();
    for (auto [stage, sum] : llvm::zip_equal(plan.columnSums, sums))
      columnValues[resultsOf(*stage).front()] = sum;
    for (const RowStore &store : plan.columnStores)
      storeElements(b, columnValue(store.value, column), pointerTo(store),
                    column);
  });
}

void RowEmitter::joinAll() {
  forEachPosition([&](Value position) {
    storeColumns(position,
                 joinPartials(position, constantOf(b, 0), rowBlocks, kFan));
  });
}

void RowEmitter::finishColumns() {
  Value fan = constantOf(b, kFan);
  Value number = arith::DivUIOp::create(b, rowBlock, fan);
  Value leader = arith::MulIOp::create(b, number, fan);
  Value left = arith::SubIOp::create(b, rowBlocks, leader);
  Value count = arith::MinSIOp::create(b, left, fan);
  emitIf(b, isLastOf(counterOf(leader, 0), count), [&] {
    fence(b);
    Value end = arith::AddIOp::create(b, leader, count);
    forEachPosition([&](Value position) {
      Values sums = joinPartials(position, leader, end, 1);
      for (auto [i, sum] : llvm::enumerate(sums))
        storeElements(b, sum, workspace, partialIndex(leader, i, position));
    });
    Value rounded = scaled(b, rowBlocks, 1, constantOf(b, kFan - 1));
    Value leaders = arith::DivUIOp::create(b, rounded, fan);
    emitIf(b, isLastOf(counterOf(constantOf(b, 0), 1), leaders), [&] {
      fence(b);
      joinAll();
    });
  });
}
