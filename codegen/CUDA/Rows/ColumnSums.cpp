//===- ColumnSums.cpp - what a block adds up over its rows ----------------===//
//
// Each thread adds the columns that it has in all rows: in registers, or in the
// block's part of the workspace if the row is looped. In memory, element e of
// the vector of thread t of a slice stands at position e * threads + t, so that
// neighbours write neighbours.
//
// The workspace holds for each block two counters, padded to 16 bytes, and the
// sums of its rows: [sum][position], four bytes each.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static constexpr int64_t kHeaderWords = 4;

int64_t RowEmitter::regionWords() const {
  int64_t sums = plan.columnSums.size();
  return kHeaderWords + llvm::alignTo(sums * width(), kHeaderWords);
}

/// Groups that share a warp write to banks beside each other.
int64_t RowEmitter::groupStride() const {
  if (schedule.threads >= 32)
    return width();
  return llvm::alignTo(width(), 32) + schedule.threads;
}

unsigned RowEmitter::columnSumNumber(const RowStage *stage) const {
  return llvm::find(plan.columnSums, stage) - plan.columnSums.begin();
}

RowEmitter::Values RowEmitter::initialColumnSums() {
  Values sums;
  if (schedule.isLooped)
    return sums;
  for (const RowStage *stage : plan.columnSums)
    sums.append(schedule.chunks(),
                splatOf(b, neutralOf(stage->combiner), schedule.vector));
  return sums;
}

static Value elementAt(ImplicitLocOpBuilder &b, Value vector, int64_t index) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return vector::ExtractOp::create(b, vector, index);
}

Value RowEmitter::positionOf(Value slice, int64_t element) {
  Value inSlice =
      scaled(b, inRow, 1, constantOf(b, element * schedule.threads));
  return scaled(b, slice, 1, inSlice);
}

/// The word of the workspace where a block keeps a partial sum.
Value RowEmitter::partialIndex(Value ofRowBlock, unsigned sum, Value position) {
  Value block =
      scaled(b, ofRowBlock, 1, arith::MulIOp::create(b, tileBlock, rowBlocks));
  Value inRegion =
      scaled(b, position, 1, constantOf(b, kHeaderWords + sum * width()));
  return scaled(b, block, regionWords(), inRegion);
}

void RowEmitter::addInWorkspace(unsigned sum, const Chunk &chunk, Value value) {
  Operation *combiner = plan.columnSums[sum]->combiner;
  Type element = combiner->getResult(0).getType();
  for (int64_t i = 0; i < schedule.vector; ++i) {
    Value index = partialIndex(rowBlock, sum, positionOf(chunk.slice, i));
    Value old = loadElements(b, workspace, index, element, 1);
    Value joined = combine(b, combiner, old, elementAt(b, value, i));
    storeElements(b, joined, workspace, index);
  }
}

/// Joins a sum of all groups of the block in shared memory.
void RowEmitter::joinGroups(unsigned sum, ValueRange vectors) {
  Operation *combiner = plan.columnSums[sum]->combiner;
  Type element = combiner->getResult(0).getType();
  Value shared = sharedAddress(b, kColumns);
  Value mine = scaled(b, group, groupStride(), Value());
  for (auto [chunk, vector] : llvm::enumerate(vectors))
    for (int64_t i = 0; i < schedule.vector; ++i) {
      Value slice = constantOf(b, int64_t(chunk) * schedule.slice());
      storeElements(b, elementAt(b, vector, i), shared,
                    scaled(b, mine, 1, positionOf(slice, i)));
    }
  gpu::BarrierOp::create(b);
  forEachPosition([&](Value position) {
    Value total = loadElements(b, shared, position, element, 1);
    for (int64_t i = 1; i < schedule.groups; ++i) {
      Value at = scaled(b, position, 1, constantOf(b, i * groupStride()));
      total =
          combine(b, combiner, total, loadElements(b, shared, at, element, 1));
    }
    storeElements(b, total, workspace, partialIndex(rowBlock, sum, position));
  });
  gpu::BarrierOp::create(b);
}

/// From registers to the workspace.
void RowEmitter::storeColumnSums(const Values &sums) {
  size_t chunks = schedule.chunks();
  for (unsigned sum = 0; sum * chunks < sums.size(); ++sum) {
    ArrayRef<Value> vectors = ArrayRef<Value>(sums).slice(sum * chunks, chunks);
    if (schedule.groups > 1) {
      joinGroups(sum, vectors);
      continue;
    }
    for (auto [chunk, vector] : llvm::enumerate(vectors))
      for (int64_t i = 0; i < schedule.vector; ++i) {
        Value slice = constantOf(b, int64_t(chunk) * schedule.slice());
        storeElements(b, elementAt(b, vector, i), workspace,
                      partialIndex(rowBlock, sum, positionOf(slice, i)));
      }
  }
}

/// Runs `body` for each position of the tile, on all threads of the block.
void RowEmitter::forEachPosition(llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, threads.thread, constantOf(b, width()),
                                 constantOf(b, schedule.blockThreads()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
