//===- Emission.cpp - short names for what the parts build ----------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

Value Emission::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

Value Emission::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value Emission::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(x, y);
}

Value Emission::sub(Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(x, y);
}

Value Emission::mul(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(x, y);
}

Value Emission::div(Value x, Value y) {
  return b.createOrFold<arith::DivUIOp>(x, y);
}

Value Emission::rem(Value x, Value y) {
  return b.createOrFold<arith::RemUIOp>(x, y);
}

Value Emission::min(Value x, Value y) {
  return b.createOrFold<arith::MinUIOp>(x, y);
}

Value Emission::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, x, y);
}

Value Emission::equal(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}

Value Emission::select(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(condition, x, y);
}

Value Emission::wide(Value x) {
  return b.createOrFold<arith::ExtUIOp>(b.getI64Type(), x);
}

Value Emission::sharedAt(Value base, Value bytes) {
  return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                             ValueRange{bytes});
}

void Emission::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}
