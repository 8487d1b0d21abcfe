//===- RowValues.cpp - values of a row kernel, made on demand -------------===//

#include "codegen/CPU/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

Value RowEmitter::baseOf(Value argument) const {
  std::optional<unsigned> number = argumentOf(argument);
  assert(number && "neither an argument nor the result of a stage");
  return bases[*number];
}

Value RowEmitter::baseOf(const RowStore &store) const {
  func::FuncOp func = source;
  return bases[func.getNumArguments() + store.result];
}

Value RowEmitter::read(Value base, Value index, Type element, Value mask) {
  return loadElements(b, addressOf(b, base, index, element), element, kLanes,
                      mask);
}

/// A buffer has whole vectors.
Value RowEmitter::readKept(Value value, const Kept &how, Chunk &chunk) {
  Type type = elementOf(value);
  if (!how.result)
    return read(buffers[value], chunk.slice.column, type, {});
  Value index = scaled(b, chunk.row.start, 1, chunk.slice.column);
  return read(baseOf(RowStore{value, *how.result, Access::Element}), index,
              type, chunk.slice.mask);
}

/// All results of a stage; those that a later sweep reads go to their buffers.
void RowEmitter::makeElements(const RowStage &stage, Chunk &chunk) {
  Values made = cloneBody(b, stage.op, argumentsOf(stage, chunk));
  for (auto [result, value] : llvm::zip_equal(resultsOf(stage), made)) {
    chunk.elements.try_emplace(result, value);
    auto *how = kept.find(result);
    if (how == kept.end() || how->second.result ||
        how->second.sweep != sweepNumber)
      continue;
    Value address =
        addressOf(b, buffers[result], chunk.slice.column, elementOf(result));
    storeElements(b, value, address);
  }
}

Value RowEmitter::element(Value value, Chunk &chunk) {
  if (Value known = chunk.elements.lookup(value))
    return known;
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage) {
    Value index = scaled(b, chunk.row.start, 1, chunk.slice.column);
    return chunk.elements[value] =
               read(baseOf(value), index, elementOf(value), chunk.slice.mask);
  }
  auto *how = kept.find(value);
  if (how != kept.end() && how->second.sweep < sweepNumber)
    return chunk.elements[value] = readKept(value, how->second, chunk);
  makeElements(*stage, chunk);
  return chunk.elements[value];
}

Value RowEmitter::column(Value value, Slice &slice) {
  Value &known = slice.columns[value];
  if (!known)
    known = read(baseOf(value), slice.column, elementOf(value), slice.mask);
  return known;
}

/// Scalars, and what there is one of in a row, outside of any loop over it.
Value RowEmitter::rowValue(Value value, Row &row) {
  if (Value known = row.values.lookup(value))
    return known;
  OpBuilder::InsertionGuard guard(b);
  if (columnLoop)
    b.setInsertionPoint(columnLoop);
  return makeRowValue(value, row);
}

Value RowEmitter::makeRowValue(Value value, Row &row) {
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage) {
    bool isScalar = cast<RankedTensorType>(value.getType()).getRank() == 0;
    Value index = isScalar ? constantOf(b, 0) : row.index;
    Type type = elementOf(value);
    return row.values[value] = loadElements(
               b, addressOf(b, baseOf(value), index, type), type, 1);
  }
  assert(stage->kind == RowStage::Kind::RowPointwise &&
         "a reduction is known when its sweep is over");
  BodyArguments arguments;
  arguments.contract = kernel.contract;
  for (auto [input, access] : inputsOf(*stage))
    arguments.values.push_back(rowValue(input, row));
  arguments.indices = {indicesFrom(b, row.index, 1)};
  Values made = cloneBody(b, stage->op, arguments);
  for (auto [result, each] : llvm::zip_equal(resultsOf(*stage), made))
    row.values[result] = each;
  return row.values[value];
}

Value RowEmitter::operandOf(Value value, Access access, Chunk &chunk) {
  switch (access) {
  case Access::Element:
    return element(value, chunk);
  case Access::Column:
    return column(value, chunk.slice);
  case Access::Row:
  case Access::Scalar:
    return broadcastTo(b, rowValue(value, chunk.row), kLanes);
  }
  llvm_unreachable("all accesses are handled");
}

BodyArguments RowEmitter::argumentsOf(const RowStage &stage, Chunk &chunk) {
  BodyArguments arguments;
  arguments.width = kLanes;
  arguments.contract = kernel.contract;
  for (auto [input, access] : inputsOf(stage))
    arguments.values.push_back(operandOf(input, access, chunk));
  if (!readsIndex(stage.op))
    return arguments;
  Value row = broadcastTo(b, indicesFrom(b, chunk.row.index, 1), kLanes);
  Value column = indicesFrom(b, chunk.slice.column, kLanes);
  if (stage.kind == RowStage::Kind::ColumnReduction)
    arguments.indices = {column, row};
  else
    arguments.indices = {row, column};
  return arguments;
}

Value RowEmitter::contribution(const RowStage &stage, Chunk &chunk) {
  Value value =
      cloneBody(b, stage.op, argumentsOf(stage, chunk), stage.combiner).front();
  if (!chunk.slice.mask)
    return value;
  Value neutral = splatOf(b, neutralOf(stage.combiner), kLanes);
  return arith::SelectOp::create(b, chunk.slice.mask, value, neutral);
}
