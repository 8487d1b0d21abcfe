//===- RowSweeps.cpp - reads of a row -------------------------------------===//
//
// Column c of a row is added to lane c % kLanes of sum number c / kLanes %
// `unroll`; at the end, neighbouring sums are joined, then halves of the vector
// (Vectors.h, joinElements). That order depends on the kernel alone.
//
//===----------------------------------------------------------------------===//

#include "codegen/CPU/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;

/// Sums of one reduction that are in flight: an addition takes several cycles,
/// but there are only so many registers.
static int64_t unrollOf(const Sweep &sweep) {
  if (sweep.reductions.empty())
    return 1;
  return sweep.reductions.size() <= 2 ? 4 : 2;
}

/// All that a sweep does with one slice of its rows. `sums` are the partial
/// results of row reductions so far.
void RowEmitter::runSlice(const Sweep &sweep, Value column, Value mask,
                          MutableArrayRef<Row> rows,
                          MutableArrayRef<Value> sums) {
  Slice slice{column, mask};
  SmallVector<Values> parts;
  for (Row &row : rows) {
    Chunk chunk{row, slice};
    for (auto [stage, sum] : llvm::zip_equal(sweep.reductions, sums))
      sum = combine(b, stage->combiner, sum, contribution(*stage, chunk));
    for (const RowStore &store : sweep.stores) {
      Value value = element(store.value, chunk);
      Value index = scaled(b, row.start, 1, column);
      Type type = getElementTypeOrSelf(value.getType());
      storeElements(b, value, addressOf(b, baseOf(store), index, type), mask);
    }
    Values &part = parts.emplace_back();
    for (const RowStage *stage : sweep.columnSums)
      part.push_back(contribution(*stage, chunk));
  }
  addToPartials(sweep, slice, parts);
}

/// The slices up to column `end`, `unroll` of them at a time.
Values RowEmitter::runLoop(const Sweep &sweep, MutableArrayRef<Row> rows,
                           ArrayRef<Value> sums, int64_t end, int64_t unroll) {
  auto loop = scf::ForOp::create(b, constantOf(b, 0), constantOf(b, end),
                                 constantOf(b, unroll * kLanes), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  columnLoop = loop;
  Values inside(loop.getRegionIterArgs());
  size_t count = sweep.reductions.size();
  for (int64_t i = 0; i != unroll; ++i) {
    Value column =
        scaled(b, loop.getInductionVar(), 1, constantOf(b, i * kLanes));
    runSlice(sweep, column, /*mask=*/{}, rows,
             MutableArrayRef<Value>(inside).slice(i * count, count));
  }
  columnLoop = nullptr;
  if (!inside.empty())
    scf::YieldOp::create(b, inside);
  return Values(loop.getResults());
}

void RowEmitter::joinSums(const Sweep &sweep, Row &row, ArrayRef<Value> sums) {
  size_t count = sweep.reductions.size();
  for (auto [i, stage] : llvm::enumerate(sweep.reductions)) {
    Values left;
    for (size_t at = i; at < sums.size(); at += count)
      left.push_back(sums[at]);
    for (; left.size() > 1; left.truncate(left.size() / 2))
      for (size_t pair = 0; pair != left.size() / 2; ++pair)
        left[pair] =
            combine(b, stage->combiner, left[2 * pair], left[2 * pair + 1]);
    row.values[resultsOf(*stage).front()] =
        joinElements(b, stage->combiner, left.front());
  }
}

/// Only rows that are not reduced are computed several at a time.
void RowEmitter::runSweep(unsigned index, MutableArrayRef<Row> rows) {
  const Sweep &sweep = plan.sweeps[index];
  sweepNumber = index;
  int64_t unroll = unrollOf(sweep), step = unroll * kLanes;
  size_t count = sweep.reductions.size();
  Values sums;
  for (int64_t i = 0; i != unroll; ++i)
    for (const RowStage *stage : sweep.reductions)
      sums.push_back(splatOf(b, neutralOf(stage->combiner), kLanes));
  int64_t whole = kernel.columns / step * step;
  if (whole != 0)
    sums = runLoop(sweep, rows, sums, whole, unroll);
  for (int64_t at = whole; at < kernel.columns; at += kLanes) {
    int64_t left = kernel.columns - at;
    Value mask = left < kLanes ? constantMask(b, left) : Value();
    size_t first = at / kLanes % unroll * count;
    runSlice(sweep, constantOf(b, at), mask, rows,
             MutableArrayRef<Value>(sums).slice(first, count));
  }
  if (count != 0)
    joinSums(sweep, rows.front(), sums);
}
