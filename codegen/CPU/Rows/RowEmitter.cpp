//===- RowEmitter.cpp - functions of a row kernel, and their rows ---------===//

#include "codegen/CPU/Rows/RowEmitter.h"
#include "codegen/CPU/Rows/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;
using ::mp::runtime::Extent;
using ::mp::runtime::rows::Job;

RowEmitter::RowEmitter(const RowKernel &kernel, const RowPlan &plan)
    : kernel(kernel), plan(plan), kept(findKept(kernel, plan)),
      source(kernel.func), module(ModuleOp::create(source.getLoc())),
      b(source.getLoc(), source.getContext()) {}

/// The builder stands at the start of the function.
Block *RowEmitter::startFunction(StringRef name, ArrayRef<Type> types) {
  b.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(b, name, b.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  return entry;
}

void RowEmitter::makeBases(Value buffers) {
  bases.clear();
  unsigned count = source.getNumArguments() + source.getNumResults();
  for (unsigned i = 0; i != count; ++i)
    bases.push_back(bufferOf(b, buffers, i));
}

/// Where kept elements of a row wait for later sweeps.
void RowEmitter::makeBuffers() {
  for (auto &[value, how] : kept) {
    if (how.result)
      continue;
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    buffers[value] = LLVM::AllocaOp::create(
        b, pointerType(b), storedType(element),
        constantOf(b, paddedColumns(kernel)), /*alignment=*/64);
  }
}

/// Rows that share the reads and writes of partial sums.
int64_t RowEmitter::rowsAtOnce() const {
  return hasColumnSums() && !plan.hasRowReductions() ? 4 : 1;
}

void RowEmitter::storeRowValues(Row &row) {
  for (const RowStore &store : plan.rowStores) {
    Value value = rowValue(store.value, row);
    storeElements(b, value,
                  addressOf(b, baseOf(store), row.index, value.getType()));
  }
}

void RowEmitter::emitRows(MutableArrayRef<Row> rows) {
  for (unsigned i = 0, e = plan.sweeps.size(); i != e; ++i)
    runSweep(i, rows);
  for (Row &row : rows)
    storeRowValues(row);
}

void RowEmitter::emitLoopOverRows(Value begin, Value end, int64_t step) {
  auto loop = scf::ForOp::create(b, begin, end, constantOf(b, step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Row> rows;
  for (int64_t i = 0; i != step; ++i) {
    Value index = scaled(b, loop.getInductionVar(), 1, constantOf(b, i));
    rows.push_back(Row{index, scaled(b, index, kernel.columns, {})});
  }
  emitRows(rows);
}

void RowEmitter::emitRowsFunction() {
  Type i64 = b.getI64Type(), pointer = pointerType(b);
  OpBuilder::InsertionGuard guard(b);
  Block *entry = startFunction(kRowsName, {i64, i64, pointer, pointer});
  Value begin = entry->getArgument(0), end = entry->getArgument(1);
  partials = entry->getArgument(3);
  makeBases(entry->getArgument(2));
  makeBuffers();
  if (hasColumnSums())
    clearPartials();
  if (int64_t step = rowsAtOnce(); step != 1) {
    Value count = arith::SubIOp::create(b, end, begin);
    Value rest = arith::RemSIOp::create(b, count, constantOf(b, step));
    Value middle = arith::SubIOp::create(b, end, rest);
    emitLoopOverRows(begin, middle, step);
    begin = middle;
  }
  emitLoopOverRows(begin, end, 1);
  func::ReturnOp::create(b);
}

OwningOpRef<ModuleOp> RowEmitter::emit() {
  emitRowsFunction();
  if (hasColumnSums())
    emitColumnsFunction();
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>> cpu::emitRows(const RowKernel &kernel) {
  for (const RowStage &stage : kernel.stages)
    if (failed(checkBody(stage.op)))
      return failure();
  FailureOr<RowPlan> plan = planRows(kernel);
  if (failed(plan))
    return failure();
  return RowEmitter(kernel, *plan).emit();
}

FailureOr<Job> cpu::jobOf(const RowKernel &kernel) {
  FailureOr<RowPlan> plan = planRows(kernel);
  if (failed(plan))
    return failure();
  Job job;
  job.rows = ShapedType::isDynamic(kernel.rows)
                 ? Extent{kernel.dynamicFactor, 0}
                 : Extent{kernel.rows, -1};
  job.columns = kernel.columns;
  job.partialBytes = partialOffset(kernel, *plan, nullptr);
  return job;
}
