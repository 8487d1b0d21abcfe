//===- Finish.cpp - the arithmetic behind sums, in vectors ----------------===//

#include "codegen/CPU/Finish.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/Gemm/Gemm.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;
using ::mp::runtime::gemm::kBlock;

namespace {
/// Emits the function for one kernel.
class Emitter {
public:
  Emitter(const MatmulKernel &given, OpBuilder &builder)
      : kernel(given), builder(builder), loc(kernel.func.getLoc()) {}

  LogicalResult emit(func::FuncOp finish);

private:
  /// Fields of gemm::Block, by position.
  enum Field { Sums, Batch, Row, Column, Rows, Columns };

  void loadFields(Value block);
  LogicalResult emitRow(Value row);
  LogicalResult emitVector(int64_t lane);

  Value load(const KernelOperand &operand);
  void store(Value value, unsigned result, Type element);
  LogicalResult cloneBody(Value sums, SmallVectorImpl<Value> &yielded);
  FailureOr<Value> cloneOp(Operation *op, IRMapping &map);
  FailureOr<Value> lookUp(Value scalar, IRMapping &map);

  // Addresses.
  Value extent(int64_t size);
  Value offsetOf(Access access, bool batched);
  Value address(unsigned buffer, Value offset, Type element);

  // Small pieces.
  Value constant(int64_t value);
  Value add(Value a, Value b);
  Value mul(Value a, Value b);
  Value field(Value block, Field field, Type type);
  VectorType vectorOf(Type element) const {
    return VectorType::get(kLanes, element);
  }
  static Type storageOf(Type element) {
    return element.isInteger(1) ? IntegerType::get(element.getContext(), 8)
                                : element;
  }
  LLVM::LLVMPointerType pointer() {
    return LLVM::LLVMPointerType::get(builder.getContext());
  }

  MatmulKernel kernel;
  OpBuilder &builder;
  Location loc;
  Value buffers, sizes;
  Value sums, batch, firstRow, firstColumn, rows, columns;
  /// Of the vector at hand: its first element's position, and which lanes are
  /// part of the matrix.
  Value row, column, mask;
};
} // namespace

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value Emitter::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

Value Emitter::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value Emitter::mul(Value a, Value b) {
  return arith::MulIOp::create(builder, loc, a, b);
}

Value Emitter::field(Value block, Field field, Type type) {
  Value at = LLVM::GEPOp::create(builder, loc, pointer(), builder.getI64Type(),
                                 block, ArrayRef<LLVM::GEPArg>{field});
  return LLVM::LoadOp::create(builder, loc, type, at);
}

void Emitter::loadFields(Value block) {
  Type i64 = builder.getI64Type();
  sums = field(block, Sums, pointer());
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
    return constant(size);
  Value rows = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), sizes);
  return mul(rows, constant(kernel.dynamicFactor));
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
  return offset ? offset : constant(0);
}

Value Emitter::address(unsigned buffer, Value offset, Type element) {
  Value slot = LLVM::GEPOp::create(builder, loc, pointer(), pointer(), buffers,
                                   ArrayRef<LLVM::GEPArg>{int32_t(buffer)});
  Value base = LLVM::LoadOp::create(builder, loc, pointer(), slot);
  return LLVM::GEPOp::create(builder, loc, pointer(), storageOf(element), base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

static unsigned bytesOf(Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

/// A truth value is a byte in memory.
static Value fromStorage(OpBuilder &builder, Location loc, Value value,
                         Type element) {
  if (!element.isInteger(1))
    return value;
  auto zero = arith::ConstantOp::create(builder, loc,
                                        builder.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                               zero);
}

Value Emitter::load(const KernelOperand &operand) {
  Type storage = storageOf(operand.element);
  Value at = address(operand.argument,
                     offsetOf(operand.access, operand.batched), storage);
  Value loaded;
  if (operand.access == Access::Row || operand.access == Access::Scalar) {
    Value one =
        LLVM::LoadOp::create(builder, loc, storage, at, bytesOf(storage));
    loaded = vector::BroadcastOp::create(builder, loc, vectorOf(storage), one);
  } else {
    Value none = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(vectorOf(storage)));
    loaded = LLVM::MaskedLoadOp::create(
        builder, loc, vectorOf(storage), at, mask, none,
        builder.getI32IntegerAttr(int32_t(bytesOf(storage))));
  }
  return fromStorage(builder, loc, loaded, operand.element);
}

void Emitter::store(Value value, unsigned result, Type element) {
  Type storage = storageOf(element);
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, vectorOf(storage), value);
  Value at = address(kernel.func.getNumArguments() + result,
                     offsetOf(Access::Element, /*batched=*/true), storage);
  LLVM::MaskedStoreOp::create(
      builder, loc, value, at, mask,
      builder.getI32IntegerAttr(int32_t(bytesOf(storage))));
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// Constants are splats; a loop's index is the position of each lane.
FailureOr<Value> Emitter::cloneOp(Operation *op, IRMapping &map) {
  if (auto scalar = dyn_cast<arith::ConstantOp>(op)) {
    auto type = vectorOf(scalar.getType());
    return Value(arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, scalar.getValue())));
  }
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    linalg::GenericOp contraction = kernel.contraction;
    bool hasBatch = contraction.getNumLoops() == 4;
    int64_t loop = int64_t(index.getDim()) - (hasBatch ? 1 : 0);
    Value first = loop < 0 ? batch : loop == 0 ? row : column;
    Type type = builder.getIndexType();
    Value cast = arith::IndexCastOp::create(builder, loc, type, first);
    Value all = vector::BroadcastOp::create(builder, loc, vectorOf(type), cast);
    if (loop != 1)
      return all;
    Value lanes = vector::StepOp::create(builder, loc, vectorOf(type));
    return Value(arith::AddIOp::create(builder, loc, all, lanes));
  }
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return op->emitError("has no form on vectors");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> value = lookUp(operand, map);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  Operation *clone =
      builder.create(loc, op->getName().getIdentifier(), operands,
                     vectorOf(op->getResult(0).getType()), op->getAttrs());
  return clone->getResult(0);
}

/// The vector of a scalar, which may be a constant in front of the body.
FailureOr<Value> Emitter::lookUp(Value scalar, IRMapping &map) {
  if (map.contains(scalar))
    return map.lookup(scalar);
  Operation *op = scalar.getDefiningOp();
  if (!isa_and_present<arith::ConstantOp>(op))
    return kernel.epilogue.emitError("reads a value of its surroundings");
  FailureOr<Value> constant = cloneOp(op, map);
  if (succeeded(constant))
    map.map(scalar, *constant);
  return constant;
}

LogicalResult Emitter::cloneBody(Value sums, SmallVectorImpl<Value> &yielded) {
  linalg::GenericOp epilogue = kernel.epilogue;
  Block *body = epilogue.getBody();
  IRMapping map;
  map.map(body->getArgument(0), sums);
  for (auto [i, operand] : llvm::enumerate(kernel.operands))
    if (!body->getArgument(i + 1).use_empty())
      map.map(body->getArgument(i + 1), load(operand));
  for (Operation &op : body->without_terminator()) {
    FailureOr<Value> clone = cloneOp(&op, map);
    if (failed(clone))
      return failure();
    map.map(op.getResult(0), *clone);
  }
  for (Value value : body->getTerminator()->getOperands()) {
    FailureOr<Value> vector = lookUp(value, map);
    if (failed(vector))
      return failure();
    yielded.push_back(*vector);
  }
  return success();
}

LogicalResult Emitter::emitVector(int64_t lane) {
  Value left = arith::SubIOp::create(builder, loc, columns, constant(lane));
  Type index = builder.getIndexType();
  Value count = arith::IndexCastOp::create(
      builder, loc, index,
      arith::MaxSIOp::create(builder, loc, left, constant(0)));
  mask = vector::CreateMaskOp::create(
      builder, loc, vectorOf(builder.getI1Type()), ValueRange{count});
  column = add(firstColumn, constant(lane));
  Value inBlock = add(
      mul(arith::SubIOp::create(builder, loc, row, firstRow), constant(kBlock)),
      constant(lane));
  Type f32 = builder.getF32Type();
  Value at = LLVM::GEPOp::create(builder, loc, pointer(), f32, this->sums,
                                 ArrayRef<LLVM::GEPArg>{inBlock});
  Value loaded = LLVM::LoadOp::create(builder, loc, vectorOf(f32), at, 4);
  if (kernel.accumulatorResult)
    store(loaded, *kernel.accumulatorResult, f32);
  if (!kernel.epilogue)
    return success();
  SmallVector<Value> yielded;
  if (failed(cloneBody(loaded, yielded)))
    return failure();
  for (const KernelResult &result : kernel.results)
    store(yielded[result.yielded], result.result, result.element);
  return success();
}

LogicalResult Emitter::emitRow(Value index) {
  row = add(firstRow, index);
  for (int64_t lane = 0; lane != kBlock; lane += kLanes)
    if (failed(emitVector(lane)))
      return failure();
  return success();
}

LogicalResult Emitter::emit(func::FuncOp finish) {
  OpBuilder::InsertionGuard guard(builder);
  Block *entry = finish.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  buffers = entry->getArgument(1);
  sizes = entry->getArgument(2);
  loadFields(entry->getArgument(0));
  auto loop = scf::ForOp::create(builder, loc, constant(0), rows, constant(1));
  builder.setInsertionPointToStart(loop.getBody());
  if (failed(emitRow(loop.getInductionVar())))
    return failure();
  builder.setInsertionPointAfter(loop);
  func::ReturnOp::create(builder, loc);
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
mlir::mp::cpu::emitFinish(const MatmulKernel &kernel) {
  func::FuncOp func = kernel.func;
  MLIRContext *context = func->getContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(func.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto finish = func::FuncOp::create(
      builder, func.getLoc(), kFinishName,
      builder.getFunctionType({pointer, pointer, pointer}, {}));
  if (failed(Emitter(kernel, builder).emit(finish)))
    return failure();
  return std::move(module);
}
