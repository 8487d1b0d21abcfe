//===- Finish.cpp - the arithmetic behind sums, in vectors ----------------===//

#include "codegen/CPU/Finish.h"
#include "codegen/CPU/Vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/Gemm/Gemm.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;
using ::mp::runtime::gemm::kBlock;

namespace {
/// Emits the function for one kernel.
class Emitter {
public:
  Emitter(const MatmulKernel &given, ImplicitLocOpBuilder &builder)
      : kernel(given), b(builder) {}

  void emit(func::FuncOp finish);

private:
  /// Fields of gemm::Block, by position.
  enum Field { Sums, Batch, Row, Column, Rows, Columns };

  void loadFields(Value block);
  void emitRow(Value row);
  void emitVector(int64_t lane);

  Value load(const KernelOperand &operand);
  void store(Value value, unsigned result);
  SmallVector<Value> cloneEpilogue(Value sums);
  SmallVector<Value> indices();

  // Addresses.
  Value extent(int64_t size);
  Value offsetOf(Access access, bool batched);
  Value address(unsigned buffer, Value offset, Type element);

  // Small pieces.
  Value add(Value left, Value right) {
    return arith::AddIOp::create(b, left, right);
  }
  Value mul(Value left, Value right) {
    return arith::MulIOp::create(b, left, right);
  }
  Value field(Value block, Field field, Type type);

  const MatmulKernel &kernel;
  ImplicitLocOpBuilder &b;
  Value buffers, sizes;
  Value sums, batch, firstRow, firstColumn, rows, columns;
  /// Of the vector at hand: its first element's position, and which lanes are
  /// part of the matrix.
  Value row, column, mask;
};
} // namespace

Value Emitter::field(Value block, Field field, Type type) {
  Value at = LLVM::GEPOp::create(b, pointerType(b), b.getI64Type(), block,
                                 ArrayRef<LLVM::GEPArg>{field});
  return LLVM::LoadOp::create(b, type, at);
}

void Emitter::loadFields(Value block) {
  Type i64 = b.getI64Type();
  sums = field(block, Sums, pointerType(b));
  batch = field(block, Batch, i64);
  firstRow = field(block, Row, i64);
  firstColumn = field(block, Column, i64);
  rows = field(block, Rows, i64);
  columns = field(block, Columns, i64);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// An extent of the kernel, as runtime::Extent::value computes it.
Value Emitter::extent(int64_t size) {
  if (!ShapedType::isDynamic(size))
    return constantOf(b, size);
  Value rows = LLVM::LoadOp::create(b, b.getI64Type(), sizes);
  return mul(rows, constantOf(b, kernel.dynamicFactor));
}

/// The position among the elements of an operand that is read like this.
Value Emitter::offsetOf(Access access, bool batched) {
  bool hasRow = access == Access::Element || access == Access::Row;
  bool hasColumn = access == Access::Element || access == Access::Column;
  Value offset;
  auto step = [&](bool has, int64_t size, Value index) {
    if (!has)
      return;
    offset = offset ? add(mul(offset, extent(size)), index) : index;
  };
  step(batched, kernel.batch, batch);
  step(hasRow, kernel.m, row);
  step(hasColumn, kernel.n, column);
  return offset ? offset : constantOf(b, 0);
}

Value Emitter::address(unsigned buffer, Value offset, Type element) {
  return addressOf(b, bufferOf(b, buffers, buffer), offset, element);
}

//===----------------------------------------------------------------------===//
// Operands, results and what is between them
//===----------------------------------------------------------------------===//

Value Emitter::load(const KernelOperand &operand) {
  Value at =
      address(operand.argument, offsetOf(operand.access, operand.batched),
              operand.element);
  if (operand.access == Access::Row || operand.access == Access::Scalar)
    return broadcastTo(b, loadElements(b, at, operand.element, 1), kLanes);
  return loadElements(b, at, operand.element, kLanes, mask);
}

void Emitter::store(Value value, unsigned result) {
  func::FuncOp func = kernel.func;
  Value at = address(func.getNumArguments() + result,
                     offsetOf(Access::Element, /*batched=*/true),
                     getElementTypeOrSelf(value.getType()));
  storeElements(b, value, at, mask);
}

/// Of the epilogue's loops.
SmallVector<Value> Emitter::indices() {
  SmallVector<Value> all;
  linalg::GenericOp epilogue = kernel.epilogue;
  if (epilogue.getNumLoops() == 3)
    all.push_back(broadcastTo(b, indicesFrom(b, batch, 1), kLanes));
  all.push_back(broadcastTo(b, indicesFrom(b, row, 1), kLanes));
  all.push_back(indicesFrom(b, column, kLanes));
  return all;
}

SmallVector<Value> Emitter::cloneEpilogue(Value sums) {
  linalg::GenericOp epilogue = kernel.epilogue;
  BodyArguments arguments;
  arguments.width = kLanes;
  arguments.values.push_back(sums);
  for (auto [i, operand] : llvm::enumerate(kernel.operands)) {
    bool isUnused = epilogue.getBody()->getArgument(i + 1).use_empty();
    arguments.values.push_back(isUnused ? Value() : load(operand));
  }
  if (readsIndex(epilogue))
    arguments.indices = indices();
  return cloneBody(b, epilogue, arguments);
}

void Emitter::emitVector(int64_t lane) {
  Value left = arith::SubIOp::create(b, columns, constantOf(b, lane));
  Value count = arith::IndexCastOp::create(
      b, b.getIndexType(), arith::MaxSIOp::create(b, left, constantOf(b, 0)));
  mask = vector::CreateMaskOp::create(b, typeOf(b.getI1Type(), kLanes),
                                      ValueRange{count});
  column = add(firstColumn, constantOf(b, lane));
  Value inBlock = arith::SubIOp::create(b, row, firstRow);
  inBlock = scaled(b, inBlock, kBlock, constantOf(b, lane));
  Type f32 = b.getF32Type();
  Value loaded = loadElements(b, addressOf(b, sums, inBlock, f32), f32, kLanes);
  if (kernel.accumulatorResult)
    store(loaded, *kernel.accumulatorResult);
  if (!kernel.epilogue)
    return;
  SmallVector<Value> yielded = cloneEpilogue(loaded);
  for (const KernelResult &result : kernel.results)
    store(yielded[result.yielded], result.result);
}

void Emitter::emitRow(Value index) {
  row = add(firstRow, index);
  for (int64_t lane = 0; lane != kBlock; lane += kLanes)
    emitVector(lane);
}

void Emitter::emit(func::FuncOp finish) {
  OpBuilder::InsertionGuard guard(b);
  Block *entry = finish.addEntryBlock();
  b.setInsertionPointToStart(entry);
  buffers = entry->getArgument(1);
  sizes = entry->getArgument(2);
  loadFields(entry->getArgument(0));
  auto loop = scf::ForOp::create(b, constantOf(b, 0), rows, constantOf(b, 1));
  b.setInsertionPointToStart(loop.getBody());
  emitRow(loop.getInductionVar());
  b.setInsertionPointAfter(loop);
  func::ReturnOp::create(b);
}

FailureOr<OwningOpRef<ModuleOp>>
mlir::mp::cpu::emitFinish(const MatmulKernel &kernel) {
  if (kernel.epilogue && failed(checkBody(kernel.epilogue)))
    return failure();
  func::FuncOp func = kernel.func;
  OwningOpRef<ModuleOp> module = ModuleOp::create(func.getLoc());
  ImplicitLocOpBuilder b(func.getLoc(), func->getContext());
  b.setInsertionPointToEnd(module->getBody());
  Type pointer = pointerType(b);
  auto finish = func::FuncOp::create(
      b, kFinishName, b.getFunctionType({pointer, pointer, pointer}, {}));
  Emitter(kernel, b).emit(finish);
  return std::move(module);
}
