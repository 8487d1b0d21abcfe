//===- RowSweeps.cpp - reads of a row -------------------------------------===//
//
// A row that fits is unrolled: its chunks, and what was made of them, stay in
// registers from sweep to sweep. Any other row is read again in each sweep, in
// a loop of `unroll` vectors and a rest.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// The thread's vector of the slice at `slice` of the tile. Where it may lie
/// beyond the columns, loads go to the first ones instead.
Chunk RowEmitter::chunkAt(Value slice, bool isChecked) {
  Chunk chunk;
  chunk.slice = slice;
  chunk.column = scaled(b, tileBlock, schedule.tile,
                        scaled(b, inRow, schedule.vector, slice));
  if (!isChecked)
    return chunk;
  chunk.isValid =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, chunk.column,
                            constantOf(b, kernel.columns));
  chunk.column =
      arith::SelectOp::create(b, chunk.isValid, chunk.column, constantOf(b, 0));
  return chunk;
}

void RowEmitter::makeChunks() {
  chunks.clear();
  if (schedule.isLooped)
    return;
  for (int64_t i = 0, e = schedule.chunks(); i < e; ++i) {
    int64_t end = (i + 1) * schedule.slice();
    // Of several tiles, the last one may be cut anywhere.
    bool isChecked = schedule.tile < kernel.columns
                         ? kernel.columns % schedule.tile != 0
                         : end > kernel.columns;
    chunks.push_back(chunkAt(constantOf(b, i * schedule.slice()), isChecked));
  }
}

void RowEmitter::storeChunk(const RowStore &store, Chunk &chunk) {
  Value value = element(store.value, chunk);
  Value pointer = pointerTo(store);
  emitIf(b, bothOf(b, chunk.isValid, isRow), [&] {
    storeElements(b, value, pointer,
                  scaled(b, row, kernel.columns, chunk.column));
  });
}

/// All that a sweep does with one chunk. `rows` are the partial results so far;
/// a null one is neutral.
void RowEmitter::runChunk(const Sweep &sweep, Chunk &chunk, Values &rows,
                          llvm::function_ref<void(unsigned, Value)> addColumn) {
  for (auto [stage, sum] : llvm::zip_equal(sweep.reductions, rows)) {
    Value value = contribution(*stage, chunk, chunk.isValid);
    sum = sum ? combine(b, stage->combiner, sum, value) : value;
  }
  for (const RowStore &store : sweep.stores)
    storeChunk(store, chunk);
  for (const RowStage *stage : sweep.columnSums)
    addColumn(columnSumNumber(stage),
              contribution(*stage, chunk, bothOf(b, chunk.isValid, isRow)));
}

void RowEmitter::runChunks(const Sweep &sweep, Values &rows,
                           Values &columnSums) {
  for (auto [index, chunk] : llvm::enumerate(chunks))
    runChunk(sweep, chunk, rows, [&, i = index](unsigned sum, Value value) {
      Value &total = columnSums[sum * chunks.size() + i];
      total = combine(b, plan.columnSums[sum]->combiner, total, value);
    });
}

RowEmitter::Values RowEmitter::neutralRows(const Sweep &sweep) {
  return llvm::map_to_vector(sweep.reductions, [&](const RowStage *stage) {
    return splatOf(b, neutralOf(stage->combiner), schedule.vector);
  });
}

/// A loop over whole groups of `unroll` vectors, then the rest.
void RowEmitter::runLoop(const Sweep &sweep, Values &rows) {
  int64_t slice = schedule.slice(), step = slice * schedule.unroll;
  int64_t whole = kernel.columns / step * step;
  auto run = [&](Value first, int64_t offset, bool isChecked, Values &sums) {
    Chunk chunk =
        chunkAt(scaled(b, first, 1, constantOf(b, offset)), isChecked);
    runChunk(sweep, chunk, sums, [&](unsigned sum, Value value) {
      addInWorkspace(sum, chunk, value);
    });
  };
  rows = neutralRows(sweep);
  if (whole != 0) {
    auto loop = scf::ForOp::create(b, constantOf(b, 0), constantOf(b, whole),
                                   constantOf(b, step), rows);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Values sums(loop.getRegionIterArgs());
      for (int64_t i = 0; i < schedule.unroll; ++i)
        run(loop.getInductionVar(), i * slice, /*isChecked=*/false, sums);
      if (!sums.empty())
        scf::YieldOp::create(b, sums);
    }
    rows = Values(loop.getResults());
  }
  for (int64_t at = whole; at < kernel.columns; at += slice)
    run(constantOf(b, at), 0, at + slice > kernel.columns, rows);
}

void RowEmitter::runSweep(unsigned index, Values &columnSums) {
  const Sweep &sweep = plan.sweeps[index];
  makeRowValues(index);
  Values rows(sweep.reductions.size());
  if (schedule.isLooped)
    runLoop(sweep, rows);
  else
    runChunks(sweep, rows, columnSums);

  unsigned slot = 0;
  for (unsigned i = 0; i < index; ++i)
    slot += plan.sweeps[i].reductions.size();
  SmallVector<Partial> partials;
  for (auto [stage, sum] : llvm::zip_equal(sweep.reductions, rows))
    partials.push_back({stage->combiner, sum});
  joinThreads(b, threads, partials, slot);
  for (auto [stage, partial] : llvm::zip_equal(sweep.reductions, partials))
    rowValues[resultsOf(*stage).front()] = partial.value;
}

/// The first thread of a row writes what there is one of in a row.
void RowEmitter::storeRows() {
  if (plan.rowStores.empty())
    return;
  for (const RowStore &store : plan.rowStores)
    rowValue(store.value);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, inRow,
                                        constantOf(b, 0));
  emitIf(b, bothOf(b, isFirst, isRow), [&] {
    for (const RowStore &store : plan.rowStores)
      storeElements(b, rowValue(store.value), pointerTo(store), row);
  });
}
