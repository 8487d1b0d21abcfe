//===- Values.cpp - small builders of row kernels -------------------------===//

#include "codegen/CUDA/Rows/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

Value cuda::constantOf32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
}

static Value addressOf(ImplicitLocOpBuilder &b, Value pointer, Value index,
                       Type element) {
  return LLVM::GEPOp::create(b, pointer.getType(), element, pointer,
                             ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

static unsigned alignmentOf(Type element, int64_t width) {
  return std::min<int64_t>(16, storedBytes(element) * width);
}

Value cuda::loadElements(ImplicitLocOpBuilder &b, Value pointer, Value index,
                         Type element, int64_t width) {
  Type stored = storedType(element);
  Type type = typeOf(stored, width);
  Value value =
      LLVM::LoadOp::create(b, type, addressOf(b, pointer, index, stored),
                           alignmentOf(stored, width));
  if (stored == element)
    return value;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
}

void cuda::storeElements(ImplicitLocOpBuilder &b, Value value, Value pointer,
                         Value index) {
  int64_t width = widthOf(value.getType());
  Type element = getElementTypeOrSelf(value.getType());
  Type stored = storedType(element);
  if (stored != element)
    value = arith::ExtUIOp::create(b, typeOf(stored, width), value);
  LLVM::StoreOp::create(b, value, addressOf(b, pointer, index, stored),
                        alignmentOf(stored, width));
}

Value cuda::callIntrinsic(ImplicitLocOpBuilder &b, StringRef name,
                          Value operand) {
  return LLVM::CallIntrinsicOp::create(
             b, operand.getType(), b.getStringAttr(name), ValueRange{operand})
      .getResult(0);
}

void cuda::emitIf(ImplicitLocOpBuilder &b, Value condition,
                  llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value cuda::bothOf(ImplicitLocOpBuilder &b, Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::AndIOp::create(b, left, right);
}
