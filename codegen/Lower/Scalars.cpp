//===- Scalars.cpp - builds arithmetic on scalars -------------------------===//

#include "codegen/Lower/Scalars.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::mp::lower;

Value Scalars::number(Type type, double value) {
  TypedAttr attr;
  if (isa<FloatType>(type))
    attr = builder.getFloatAttr(type, value);
  else
    attr = builder.getIntegerAttr(type, int64_t(value));
  return arith::ConstantOp::create(builder, loc, attr);
}

/// Types of kernels have no f64, so that f32 holds every float.
Value Scalars::fromFloat(Value value, Type type) {
  if (!isa<FloatType>(type)) {
    if (type.isInteger(1))
      return create<arith::CmpFOp>(arith::CmpFPredicate::UNE, value,
                                   number(value.getType(), 0));
    return create<arith::FPToSIOp>(type, value);
  }
  Type f32 = builder.getF32Type();
  if (value.getType() != f32)
    value = create<arith::ExtFOp>(f32, value);
  return type == f32 ? value : create<arith::TruncFOp>(type, value);
}

Value Scalars::fromInteger(Value value, Type type) {
  bool isTruth = value.getType().isInteger(1);
  if (isa<FloatType>(type)) {
    Type f32 = builder.getF32Type();
    Value wide = isTruth ? create<arith::UIToFPOp>(f32, value)
                         : create<arith::SIToFPOp>(f32, value);
    return fromFloat(wide, type);
  }
  if (type.isInteger(1))
    return create<arith::CmpIOp>(arith::CmpIPredicate::ne, value,
                                 number(value.getType(), 0));
  if (isTruth)
    return create<arith::ExtUIOp>(type, value);
  if (type.getIntOrFloatBitWidth() > value.getType().getIntOrFloatBitWidth())
    return create<arith::ExtSIOp>(type, value);
  return create<arith::TruncIOp>(type, value);
}

Value Scalars::convert(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return isa<FloatType>(value.getType()) ? fromFloat(value, type)
                                         : fromInteger(value, type);
}

Value Scalars::column() {
  Value index = create<linalg::IndexOp>(columnLoop);
  return create<arith::IndexCastOp>(builder.getI64Type(), index);
}
