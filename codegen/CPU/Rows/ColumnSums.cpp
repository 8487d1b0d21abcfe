//===- ColumnSums.cpp - sums over all rows --------------------------------===//
//
// A block of rows adds to its partial sums, in memory, one row after another.
// In the second phase, partial sums are added from the first block to the last,
// to what the reduction starts with.
//
//===----------------------------------------------------------------------===//

#include "codegen/CPU/Rows/RowEmitter.h"
#include "codegen/CPU/Rows/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;

/// Slices of the second phase that are in flight.
static constexpr int64_t kSlices = 4;
/// Of the scratch memory, and of each sum in it.
static constexpr int64_t kAlignment = 64;

static Type typeOfSum(const RowStage &stage) {
  return stage.combiner->getResult(0).getType();
}

int64_t cpu::partialOffset(const RowKernel &kernel, const RowPlan &plan,
                           const RowStage *stage) {
  int64_t bytes = 0;
  for (const RowStage *each : plan.columnSums) {
    if (each == stage)
      break;
    bytes += llvm::alignTo(
        paddedColumns(kernel) * storedBytes(typeOfSum(*each)), kAlignment);
  }
  return bytes;
}

Value RowEmitter::partialAddress(const RowStage &stage, Value base,
                                 Value column) {
  Value offset = constantOf(b, partialOffset(kernel, plan, &stage));
  Value sums = addressOf(b, base, offset, b.getI8Type());
  return addressOf(b, sums, column, typeOfSum(stage));
}

void RowEmitter::clearPartials() {
  auto loop = scf::ForOp::create(b, constantOf(b, 0),
                                 constantOf(b, paddedColumns(kernel)),
                                 constantOf(b, kLanes));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  for (const RowStage *stage : plan.columnSums)
    storeElements(b, splatOf(b, neutralOf(stage->combiner), kLanes),
                  partialAddress(*stage, partials, loop.getInductionVar()));
}

/// `parts` are what each row adds to each sum of the sweep.
void RowEmitter::addToPartials(const Sweep &sweep, Slice &slice,
                               ArrayRef<Values> parts) {
  for (auto [i, stage] : llvm::enumerate(sweep.columnSums)) {
    Value address = partialAddress(*stage, partials, slice.column);
    Value sum = loadElements(b, address, typeOfSum(*stage), kLanes);
    for (const Values &part : parts)
      sum = combine(b, stage->combiner, sum, part[i]);
    storeElements(b, sum, address);
  }
}

//===----------------------------------------------------------------------===//
// The second phase
//===----------------------------------------------------------------------===//

/// The sums over all blocks, [slice][sum].
Values RowEmitter::joinPartials(ArrayRef<Slice> slices, Value partials,
                                Value blocks) {
  Values sums;
  for (size_t i = 0; i != slices.size(); ++i)
    for (const RowStage *stage : plan.columnSums)
      sums.push_back(splatOf(b, neutralOf(stage->combiner), kLanes));
  auto loop =
      scf::ForOp::create(b, constantOf(b, 0), blocks, constantOf(b, 1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value block = scaled(b, loop.getInductionVar(),
                       partialOffset(kernel, plan, nullptr), {});
  Value base = addressOf(b, partials, block, b.getI8Type());
  Values joined;
  for (const Slice &slice : slices)
    for (const RowStage *stage : plan.columnSums) {
      Value address = partialAddress(*stage, base, slice.column);
      Value part = loadElements(b, address, typeOfSum(*stage), kLanes);
      Value sum = loop.getRegionIterArgs()[joined.size()];
      joined.push_back(combine(b, stage->combiner, sum, part));
    }
  scf::YieldOp::create(b, joined);
  return Values(loop.getResults());
}

/// A value of the columns of a slice; sums are known.
Value RowEmitter::columnValue(Value value, Slice &slice) {
  if (Value known = slice.columns.lookup(value))
    return known;
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage)
    return column(value, slice);
  BodyArguments arguments;
  arguments.width = kLanes;
  arguments.contract = kernel.contract;
  Row none;
  for (auto [input, access] : inputsOf(*stage))
    arguments.values.push_back(
        access == Access::Scalar ? broadcastTo(b, rowValue(input, none), kLanes)
                                 : columnValue(input, slice));
  arguments.indices = {indicesFrom(b, slice.column, kLanes)};
  Values made = cloneBody(b, stage->op, arguments);
  for (auto [result, each] : llvm::zip_equal(resultsOf(*stage), made))
    slice.columns[result] = each;
  return slice.columns[value];
}

void RowEmitter::emitColumns(ArrayRef<Slice> slices, Value partials,
                             Value blocks) {
  Values sums = joinPartials(slices, partials, blocks);
  size_t next = 0;
  for (Slice slice : slices) {
    for (const RowStage *stage : plan.columnSums)
      slice.columns[resultsOf(*stage).front()] = sums[next++];
    for (const RowStore &store : plan.columnStores) {
      Value value = columnValue(store.value, slice);
      Type type = getElementTypeOrSelf(value.getType());
      storeElements(b, value, addressOf(b, baseOf(store), slice.column, type),
                    slice.mask);
    }
  }
}

/// Groups of whole slices in a loop, then, where the columns end, the rest.
void RowEmitter::emitColumnsFunction() {
  Type i64 = b.getI64Type(), pointer = pointerType(b);
  OpBuilder::InsertionGuard guard(b);
  Block *entry = startFunction(kColumnsName, {i64, i64, pointer, pointer, i64});
  Value begin = entry->getArgument(0), end = entry->getArgument(1);
  Value sums = entry->getArgument(3), blocks = entry->getArgument(4);
  makeBases(entry->getArgument(2));
  int64_t step = kSlices * kLanes, whole = kernel.columns / step * step;
  Value last = arith::MinSIOp::create(b, end, constantOf(b, whole));
  auto loop = scf::ForOp::create(b, begin, last, constantOf(b, step));
  auto slices = [&](Value first, int64_t columns) {
    SmallVector<Slice> made;
    for (int64_t at = 0; at < columns; at += kLanes) {
      bool isCut = columns - at < kLanes;
      made.push_back(Slice{scaled(b, first, 1, constantOf(b, at)),
                           isCut ? constantMask(b, columns - at) : Value()});
    }
    return made;
  };
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(loop.getBody());
    emitColumns(slices(loop.getInductionVar(), step), sums, blocks);
  }
  if (whole != kernel.columns) {
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end,
                                         constantOf(b, whole));
    auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inBranch(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitColumns(slices(constantOf(b, whole), kernel.columns - whole), sums,
                blocks);
  }
  func::ReturnOp::create(b);
}
