//===- Builder.cpp - short names for what kernels are made of -------------===//

#include "codegen/CUDA/Builder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::mp::cuda;

std::optional<int64_t> mp::cuda::constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value KernelBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}

Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value KernelBuilder::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

LLVM::LLVMPointerType KernelBuilder::pointerType(unsigned space) {
  return LLVM::LLVMPointerType::get(getContext(), space);
}

/// A constant of the type of `like`.
static Value constantLike(KernelBuilder &b, Value like, int64_t value) {
  return like.getType().isInteger(64) ? b.i64(value) : b.i32(value);
}

Value KernelBuilder::add(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value KernelBuilder::add(Value a, int64_t b) {
  return add(a, constantLike(*this, a, b));
}
Value KernelBuilder::sub(Value a, Value b) {
  return createOrFold<arith::SubIOp>(a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value KernelBuilder::mul(Value a, int64_t b) {
  return mul(a, constantLike(*this, a, b));
}
Value KernelBuilder::div(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value KernelBuilder::div(Value a, int64_t b) {
  return div(a, constantLike(*this, a, b));
}
Value KernelBuilder::rem(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value KernelBuilder::rem(Value a, int64_t b) {
  return b == 1 ? constantLike(*this, a, 0) : rem(a, constantLike(*this, a, b));
}
Value KernelBuilder::xorOf(Value a, Value b) {
  return createOrFold<arith::XOrIOp>(a, b);
}
Value KernelBuilder::minOf(Value a, Value b) {
  return createOrFold<arith::MinUIOp>(a, b);
}
Value KernelBuilder::ceilDiv(Value a, int64_t b) {
  return div(add(a, b - 1), b);
}
Value KernelBuilder::isLess(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::isEqual(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::andOf(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return createOrFold<arith::AndIOp>(a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}
Value KernelBuilder::toI64(Value value) {
  return createOrFold<arith::ExtUIOp>(getI64Type(), value);
}

Value KernelBuilder::offset(Value pointer, Value bytes) {
  if (std::optional<int64_t> constant = constantOf(bytes))
    return offset(pointer, *constant);
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value KernelBuilder::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  // A constant index of a GEP has 32 bits.
  if (!llvm::isInt<32>(bytes))
    return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{i64(bytes)});
  return LLVM::GEPOp::create(
      *this, pointer.getType(), getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value KernelBuilder::load(Type type, Value pointer, int64_t alignment) {
  return LLVM::LoadOp::create(*this, type, pointer,
                              static_cast<unsigned>(alignment));
}

void KernelBuilder::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(*this, value, pointer,
                        static_cast<unsigned>(alignment));
}

void KernelBuilder::barrier() { NVVM::BarrierOp::create(*this); }

void KernelBuilder::syncWarp() { NVVM::SyncWarpOp::create(*this, i32(-1)); }

void KernelBuilder::deviceFence() {
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::acq_rel,
                        StringRef("device"));
}
