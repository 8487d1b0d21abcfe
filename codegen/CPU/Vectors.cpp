//===- Vectors.cpp - memory and masks of kernels for the CPU --------------===//

#include "codegen/CPU/Vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;

LLVM::LLVMPointerType cpu::pointerType(Builder &b) {
  return LLVM::LLVMPointerType::get(b.getContext());
}

Value cpu::bufferOf(ImplicitLocOpBuilder &b, Value buffers, unsigned number) {
  Type pointer = pointerType(b);
  Value slot = LLVM::GEPOp::create(b, pointer, pointer, buffers,
                                   ArrayRef<LLVM::GEPArg>{int32_t(number)});
  return LLVM::LoadOp::create(b, pointer, slot);
}

Value cpu::addressOf(ImplicitLocOpBuilder &b, Value base, Value index,
                     Type element) {
  return LLVM::GEPOp::create(b, pointerType(b), storedType(element), base,
                             ArrayRef<LLVM::GEPArg>{index});
}

/// A truth value is a byte in memory. Halves move as integers: not every target
/// has constants of theirs.
static Type movedType(Type element) {
  if (element.isBF16() || element.isF16())
    return IntegerType::get(element.getContext(), 16);
  return storedType(element);
}

Value cpu::loadElements(ImplicitLocOpBuilder &b, Value address, Type element,
                        int64_t width, Value mask) {
  Type moved = movedType(element), type = typeOf(moved, width);
  auto alignment = unsigned(storedBytes(element));
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value value =
      mask ? LLVM::MaskedLoadOp::create(b, type, address, mask, zero,
                                        b.getI32IntegerAttr(alignment))
                 .getResult()
           : LLVM::LoadOp::create(b, type, address, alignment).getResult();
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  if (moved != element)
    return arith::BitcastOp::create(b, typeOf(element, width), value);
  return value;
}

void cpu::storeElements(ImplicitLocOpBuilder &b, Value value, Value address,
                        Value mask) {
  Type element = getElementTypeOrSelf(value.getType());
  Type type = typeOf(movedType(element), widthOf(value.getType()));
  auto alignment = unsigned(storedBytes(element));
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(b, type, value);
  else if (type != value.getType())
    value = arith::BitcastOp::create(b, type, value);
  if (mask)
    LLVM::MaskedStoreOp::create(b, value, address, mask,
                                b.getI32IntegerAttr(alignment));
  else
    LLVM::StoreOp::create(b, value, address, alignment);
}

Value cpu::constantMask(ImplicitLocOpBuilder &b, int64_t count) {
  SmallVector<bool> lanes(kLanes, false);
  std::fill_n(lanes.begin(), count, true);
  return arith::ConstantOp::create(b, b.getBoolVectorAttr(lanes));
}

Value cpu::joinElements(ImplicitLocOpBuilder &b, Operation *combiner,
                        Value vector) {
  for (int64_t half = widthOf(vector.getType()) / 2; half != 0; half /= 2) {
    auto part = [&](int64_t first) -> Value {
      if (half == 1)
        return vector::ExtractOp::create(b, vector, first);
      return vector::ExtractStridedSliceOp::create(
          b, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{half},
          ArrayRef<int64_t>{1});
    };
    Value low = part(0), high = part(half);
    vector = combine(b, combiner, low, high);
  }
  return vector;
}

static bool isVectorizable(Operation &op) {
  return isa<arith::ConstantOp, linalg::IndexOp>(op) ||
         (OpTrait::hasElementwiseMappableTraits(&op) &&
          op.getNumResults() == 1);
}

LogicalResult cpu::checkBody(linalg::GenericOp op) {
  Block *body = op.getBody();
  for (Operation &inner : *body) {
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != body &&
          !operand.getDefiningOp<arith::ConstantOp>())
        return inner.emitError("reads a value of its surroundings");
    if (&inner != body->getTerminator() && !isVectorizable(inner))
      return inner.emitError("has no form on vectors");
  }
  return success();
}
