//===- RowValues.cpp - values of a row kernel, made on demand -------------===//

#include "codegen/CUDA/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// The parameter that holds an argument of the kernel.
Value RowEmitter::pointerOf(Value value) {
  std::optional<unsigned> argument = argumentOf(value);
  assert(argument && "neither an argument nor the result of a stage");
  return func.getArgument(*argument);
}

/// The parameter that gets a result of the kernel.
Value RowEmitter::pointerTo(const RowStore &store) {
  return func.getArgument(source.getNumArguments() + store.result);
}

Value RowEmitter::element(Value value, Chunk &chunk) {
  if (Value known = chunk.elements.lookup(value))
    return known;
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage) {
    Value index = scaled(b, row, kernel.columns, chunk.column);
    return chunk.elements[value] = loadElements(
               b, pointerOf(value), index, elementOf(value), schedule.vector);
  }
  BodyArguments arguments = argumentsOf(*stage, &chunk, schedule.vector);
  auto results = cloneBody(b, stage->op, arguments);
  for (auto [result, made] : llvm::zip_equal(resultsOf(*stage), results))
    chunk.elements[result] = made;
  return chunk.elements[value];
}

Value RowEmitter::column(Value value, Chunk &chunk) {
  Value &known = chunk.columns[value];
  if (!known)
    known = loadElements(b, pointerOf(value), chunk.column, elementOf(value),
                         schedule.vector);
  return known;
}

Value RowEmitter::scalar(Value value) {
  Value &known = scalars[value];
  if (!known)
    known = loadElements(b, pointerOf(value), constantOf(b, 0),
                         elementOf(value), 1);
  return known;
}

Value RowEmitter::rowValue(Value value) {
  if (Value known = rowValues.lookup(value))
    return known;
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage)
    return rowValues[value] =
               loadElements(b, pointerOf(value), row, elementOf(value), 1);
  assert(stage->kind == RowStage::Kind::RowPointwise &&
         "a reduction is known when its sweep is over");
  auto results = cloneBody(b, stage->op, argumentsOf(*stage, nullptr, 1));
  for (auto [result, made] : llvm::zip_equal(resultsOf(*stage), results))
    rowValues[result] = made;
  return rowValues[value];
}

/// Makes what rows and scalars of this level the elements may ask for, outside
/// of any loop over them.
void RowEmitter::makeRowValues(unsigned level) {
  for (const RowStage &stage : kernel.stages) {
    for (auto [input, access] : inputsOf(stage))
      if (access == Access::Row && plan.levelOf(input) <= level)
        rowValue(input);
    if (stage.kind == RowStage::Kind::RowPointwise)
      for (Value result : resultsOf(stage))
        if (plan.levelOf(result) <= level)
          rowValue(result);
  }
}

Value RowEmitter::operandOf(Value value, Access access, Chunk *chunk,
                            int64_t width) {
  switch (access) {
  case Access::Element:
    return element(value, *chunk);
  case Access::Column:
    return column(value, *chunk);
  case Access::Row:
    return broadcastTo(b, rowValue(value), width);
  case Access::Scalar:
    return broadcastTo(b, scalar(value), width);
  }
  llvm_unreachable("all accesses are handled");
}

BodyArguments RowEmitter::argumentsOf(const RowStage &stage, Chunk *chunk,
                                      int64_t width) {
  BodyArguments arguments;
  arguments.width = width;
  arguments.contract = kernel.contract;
  for (auto [input, access] : inputsOf(stage))
    arguments.values.push_back(operandOf(input, access, chunk, width));
  if (!readsIndex(stage.op))
    return arguments;
  Value rowIndex = broadcastTo(b, indicesFrom(b, row, 1), width);
  Value columnIndex = chunk ? indicesFrom(b, chunk->column, width) : Value();
  if (stage.kind == RowStage::Kind::ColumnReduction)
    arguments.indices = {columnIndex, rowIndex};
  else
    arguments.indices = {rowIndex, columnIndex};
  return arguments;
}

Value RowEmitter::contribution(const RowStage &stage, Chunk &chunk,
                               Value isValid) {
  BodyArguments arguments = argumentsOf(stage, &chunk, schedule.vector);
  Value value = cloneBody(b, stage.op, arguments, stage.combiner).front();
  if (!isValid)
    return value;
  Value neutral = splatOf(b, neutralOf(stage.combiner), schedule.vector);
  return arith::SelectOp::create(b, isValid, value, neutral);
}
