//===- RowEmitter.h - writes one row kernel ---------------------*- C++ -*-===//
//
// Values are made when they are asked for, and kept as long as what they
// belong to: a scalar for the whole kernel, a row value while the row lasts, an
// element as long as its chunk (the vector of a thread) does.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_ROWS_ROWEMITTER_H
#define MP_CODEGEN_CUDA_ROWS_ROWEMITTER_H

#include "codegen/CUDA/Rows/Exchange.h"
#include "codegen/CUDA/Rows/Rows.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::mp::cuda {

/// One vector of a thread.
struct Chunk {
  /// First column (i64); one that exists, also where `isValid` is false.
  Value column;
  /// Whether the thread has such a vector (i1); null: always.
  Value isValid;
  /// Where the slice of all threads of the row starts in the tile (i64).
  Value slice;
  llvm::DenseMap<Value, Value> elements, columns;
};

class RowEmitter {
public:
  RowEmitter(const RowKernel &kernel, const RowPlan &plan,
             const RowSchedule &schedule);
  EmittedKernel emit();

private:
  // RowEmitter.cpp: the function, its rows, its launch.
  void makeFunction();
  void setUp();
  void emitRowLoop();
  SmallVector<Value> emitRow(Value wanted, SmallVector<Value> columnSums);
  Value stepsOfBlock();
  ::mp::runtime::CudaKernel launch();
  unsigned sizesOf() const { return hasDynamicRows() ? 1 : 0; }
  bool hasDynamicRows() const { return ShapedType::isDynamic(kernel.rows); }

  // RowValues.cpp: values of the kernel.
  Value pointerOf(Value value);
  Value pointerTo(const RowStore &store);
  Value element(Value value, Chunk &chunk);
  Value column(Value value, Chunk &chunk);
  Value scalar(Value value);
  Value rowValue(Value value);
  void makeRowValues(unsigned level);
  Value operandOf(Value value, Access access, Chunk *chunk, int64_t width);
  BodyArguments argumentsOf(const RowStage &stage, Chunk *chunk, int64_t width);
  /// What a reduction adds for a chunk; neutral where it is not valid.
  Value contribution(const RowStage &stage, Chunk &chunk, Value isValid);

  // RowSweeps.cpp: reads of a row.
  using Values = SmallVector<Value>;
  struct Sums {
    Values rows;    ///< partial row reductions of a sweep
    Values columns; ///< partial column sums: [sum][chunk]
  };
  Chunk chunkAt(Value first, bool isChecked);
  void makeChunks();
  void runSweep(unsigned index, Values &columnSums);
  void runChunks(const Sweep &sweep, Values &rows, Values &columnSums);
  void runLoop(const Sweep &sweep, Values &rows);
  void runChunk(const Sweep &sweep, Chunk &chunk, Values &rows,
                llvm::function_ref<void(unsigned, Value)> addColumn);
  void storeChunk(const RowStore &store, Chunk &chunk);
  void storeRows();
  Values neutralRows(const Sweep &sweep);

  // ColumnSums.cpp: sums over all rows.
  bool hasColumnSums() const { return !plan.columnSums.empty(); }
  Values initialColumnSums();
  unsigned columnSumNumber(const RowStage *stage) const;
  void addInWorkspace(unsigned sum, const Chunk &chunk, Value value);
  void storeColumnSums(const Values &sums);
  void joinGroups(unsigned sum, ValueRange vectors);
  Value positionOf(Value slice, int64_t element);
  Value partialIndex(Value ofRowBlock, unsigned sum, Value position);
  int64_t width() const { return schedule.chunks() * schedule.slice(); }
  int64_t regionWords() const;
  int64_t groupStride() const;

  // ColumnFinish.cpp: the last block joins what all have stored.
  void finishColumns();
  void joinAll();
  Values joinPartials(Value position, Value begin, Value end, int64_t stride);
  void storeColumns(Value position, ValueRange sums);
  Value columnValue(Value value, Value column);
  Value counterOf(Value ofRowBlock, int64_t which);
  Value isLastOf(Value counter, Value count);
  void forEachPosition(llvm::function_ref<void(Value)> body);

  const RowKernel &kernel;
  const RowPlan &plan;
  const RowSchedule &schedule;
  func::FuncOp source;
  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;
  gpu::GPUFuncOp func;

  // Of the kernel.
  RowThreads threads;
  Value rows, group, inRow; ///< rows, which of the block, thread in the row
  Value rowBlock, rowBlocks, tileBlock, workspace;
  llvm::DenseMap<Value, Value> scalars;
  // Of the row at hand.
  Value row, isRow; ///< `isRow`: the row exists; null: always
  llvm::DenseMap<Value, Value> rowValues;
  SmallVector<Chunk> chunks; ///< unless the row is looped
  // Of the end.
  llvm::DenseMap<Value, Value> columnValues;
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_ROWEMITTER_H
