//===- Runs.cpp - neighbours of a row: operands, arithmetic, stores -------===//

#include "codegen/CUDA/Matmul/Runs.h"
#include "codegen/CUDA/Arithmetic.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

RunEmitter::RunEmitter(Frame &frame, int64_t width, Value column,
                       Value isInside)
    : frame(frame), b(frame.b), width(width), column(column),
      isInside(isInside) {
  for (const KernelOperand &operand : frame.kernel.operands) {
    bool dependsOnRow =
        operand.access == Access::Element || operand.access == Access::Row;
    fixed.push_back(dependsOnRow ? Value() : loadFixed(operand));
  }
}

/// Where an operand's or result's elements for a run start.
Value RunEmitter::elementIndex(Access access, bool batched, Value row) {
  Value n = b.toI64(frame.n.value), rows = b.toI64(frame.m.value);
  Value inMatrix, perMatrix;
  switch (access) {
  case Access::Element:
    inMatrix = b.add(b.mul(b.toI64(row), n), b.toI64(column));
    perMatrix = b.mul(rows, n);
    break;
  case Access::Row:
    inMatrix = b.toI64(row);
    perMatrix = rows;
    break;
  case Access::Column:
    inMatrix = b.toI64(column);
    perMatrix = n;
    break;
  case Access::Scalar:
    inMatrix = b.i64(0);
    perMatrix = b.i64(1);
    break;
  }
  if (!batched)
    return inMatrix;
  return b.add(inMatrix, b.mul(frame.tile.batch, perMatrix));
}

Value RunEmitter::loadVector(Type element, Value address, int64_t count) {
  int64_t bytes = bytesOf(element);
  int64_t alignment = std::min<int64_t>(16, bytes * count);
  if (!element.isInteger(1))
    return b.load(VectorType::get(count, element), address, alignment);
  auto type = VectorType::get(count, b.getI8Type());
  Value stored = b.load(type, address, alignment);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, zero);
}

Value RunEmitter::loadOperand(const KernelOperand &operand, Value row) {
  Value index = elementIndex(operand.access, operand.batched, row);
  Value address = b.offset(frame.arguments[operand.argument],
                           b.mul(index, bytesOf(operand.element)));
  bool isRun =
      operand.access == Access::Element || operand.access == Access::Column;
  if (isRun)
    return loadVector(operand.element, address, width);
  Value one = loadVector(operand.element, address, 1);
  Value scalar = vector::ExtractOp::create(b, one, ArrayRef<int64_t>{0});
  return vector::BroadcastOp::create(b, VectorType::get(width, operand.element),
                                     scalar);
}

Value RunEmitter::loadFixed(const KernelOperand &operand) {
  if (!isInside || operand.access == Access::Scalar)
    return loadOperand(operand, {});
  auto type = VectorType::get(width, operand.element);
  auto guarded = scf::IfOp::create(b, type, isInside, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(guarded.thenBlock());
  scf::YieldOp::create(b, loadOperand(operand, {}));
  b.setInsertionPointToStart(guarded.elseBlock());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  scf::YieldOp::create(b, zero);
  return guarded.getResult(0);
}

RunEmitter::Run RunEmitter::load(Value row) {
  Run run;
  run.row = row;
  for (auto [operand, value] : llvm::zip(frame.kernel.operands, fixed))
    run.operands.push_back(value ? value : loadOperand(operand, row));
  return run;
}

/// Batch, row and columns of a run as vectors of index.
SmallVector<Value> RunEmitter::indices(Value row) {
  auto type = VectorType::get(width, b.getIndexType());
  auto splat = [&](Value value) -> Value {
    Value index = arith::IndexCastUIOp::create(b, b.getIndexType(), value);
    return vector::BroadcastOp::create(b, type, index);
  };
  SmallVector<Attribute> numbers;
  for (int64_t i = 0; i < width; ++i)
    numbers.push_back(b.getIndexAttr(i));
  Value steps =
      arith::ConstantOp::create(b, DenseElementsAttr::get(type, numbers));
  linalg::GenericOp epilogue = frame.kernel.epilogue;
  SmallVector<Value> values;
  if (epilogue.getNumLoops() == 3)
    values.push_back(splat(frame.tile.batch));
  values.push_back(splat(row));
  values.push_back(arith::AddIOp::create(b, splat(column), steps));
  return values;
}

static bool usesIndices(linalg::GenericOp op) {
  return !op.getBody()->getOps<linalg::IndexOp>().empty();
}

void RunEmitter::store(Value value, unsigned result, Type element, Value row) {
  int64_t bytes = bytesOf(element);
  Value index = elementIndex(Access::Element, /*batched=*/true, row);
  Value address = b.offset(frame.results[result], b.mul(index, bytes));
  if (element.isInteger(1))
    value =
        arith::ExtUIOp::create(b, VectorType::get(width, b.getI8Type()), value);
  b.store(value, address, std::min<int64_t>(16, bytes * width));
}

SmallVector<Value> RunEmitter::finish(const Run &run, Value accumulator) {
  const MatmulKernel &kernel = frame.kernel;
  if (kernel.accumulatorResult)
    store(accumulator, *kernel.accumulatorResult, b.getF32Type(), run.row);
  if (!kernel.epilogue)
    return {accumulator};
  VectorBody body{kernel.epilogue, width, kernel.contract, {}};
  if (usesIndices(kernel.epilogue))
    body.indices = indices(run.row);
  SmallVector<Value> arguments{accumulator};
  llvm::append_range(arguments, run.operands);
  SmallVector<Value> yielded = cloneOnVectors(b, body, arguments);
  for (const KernelResult &result : kernel.results)
    store(yielded[result.yielded], result.result, result.element, run.row);
  return yielded;
}
