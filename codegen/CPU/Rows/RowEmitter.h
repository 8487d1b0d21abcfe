//===- RowEmitter.h - writes one row kernel for the CPU ---------*- C++ -*-===//
//
// Values are made when they are asked for, and kept as long as what they
// belong to: a row value while the row lasts, an element as long as its chunk
// (a vector of one row) does.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_ROWS_ROWEMITTER_H
#define MP_CODEGEN_CPU_ROWS_ROWEMITTER_H

#include "codegen/CPU/Rows/RowKeep.h"
#include "codegen/CPU/Vectors.h"

namespace mlir::mp::cpu {

using Values = SmallVector<Value>;
using ValueMap = llvm::DenseMap<Value, Value>;

/// A row that is computed.
struct Row {
  Value index;
  Value start; ///< its first element's number
  /// Row values and scalars.
  ValueMap values = ValueMap();
};

/// kLanes columns, of all rows at hand.
struct Slice {
  Value column;
  Value mask; ///< null: all of them exist
  ValueMap columns = ValueMap();
};

/// A slice of one row.
struct Chunk {
  Row &row;
  Slice &slice;
  ValueMap elements = ValueMap();
};

class RowEmitter {
public:
  RowEmitter(const RowKernel &kernel, const RowPlan &plan);
  OwningOpRef<ModuleOp> emit();

private:
  // RowEmitter.cpp: functions and their loops over rows.
  Block *startFunction(StringRef name, ArrayRef<Type> types);
  void emitRowsFunction();
  void emitLoopOverRows(Value begin, Value end, int64_t step);
  void emitRows(MutableArrayRef<Row> rows);
  int64_t rowsAtOnce() const;
  void makeBases(Value buffers);
  void makeBuffers();
  void storeRowValues(Row &row);

  // RowValues.cpp: values of the kernel.
  Value baseOf(Value argument) const;
  Value baseOf(const RowStore &store) const;
  Value element(Value value, Chunk &chunk);
  Value read(Value base, Value index, Type element, Value mask);
  Value readKept(Value value, const Kept &how, Chunk &chunk);
  void makeElements(const RowStage &stage, Chunk &chunk);
  Value column(Value value, Slice &slice);
  Value rowValue(Value value, Row &row);
  Value makeRowValue(Value value, Row &row);
  Value operandOf(Value value, Access access, Chunk &chunk);
  BodyArguments argumentsOf(const RowStage &stage, Chunk &chunk);
  /// What a reduction adds for a chunk; neutral where there is no column.
  Value contribution(const RowStage &stage, Chunk &chunk);

  // RowSweeps.cpp: reads of a row.
  void runSweep(unsigned index, MutableArrayRef<Row> rows);
  void runSlice(const Sweep &sweep, Value column, Value mask,
                MutableArrayRef<Row> rows, MutableArrayRef<Value> sums);
  Values runLoop(const Sweep &sweep, MutableArrayRef<Row> rows,
                 ArrayRef<Value> sums, int64_t end, int64_t unroll);
  void joinSums(const Sweep &sweep, Row &row, ArrayRef<Value> sums);

  // ColumnSums.cpp: sums over all rows.
  bool hasColumnSums() const { return !plan.columnSums.empty(); }
  Value partialAddress(const RowStage &stage, Value base, Value column);
  void clearPartials();
  void addToPartials(const Sweep &sweep, Slice &slice, ArrayRef<Values> parts);
  void emitColumnsFunction();
  void emitColumns(ArrayRef<Slice> slices, Value partials, Value blocks);
  Values joinPartials(ArrayRef<Slice> slices, Value partials, Value blocks);
  Value columnValue(Value value, Slice &slice);

  const RowKernel &kernel;
  const RowPlan &plan;
  KeptValues kept;
  func::FuncOp source;
  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;

  // Of the function at hand.
  Values bases; ///< of the kernel's buffers
  Value partials;
  ValueMap buffers; ///< of kept elements
  // Of the sweep at hand.
  unsigned sweepNumber = 0;
  Operation *columnLoop = nullptr; ///< null: none is open
};

/// The bytes before a stage's partial sums among those of a block; those of a
/// block if there is no stage.
int64_t partialOffset(const RowKernel &kernel, const RowPlan &plan,
                      const RowStage *stage);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_ROWS_ROWEMITTER_H
