//===- Numbers.cpp - arithmetic of functions ------------------------------===//

#include "codegen/Math/Numbers.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::mp::functions;

/// A number of this size has no bits behind the point, so that adding it
/// rounds.
static constexpr double kRounder = 0x1.8p23, kWideRounder = 0x1.8p52;
static constexpr int64_t kMantissaBits = 23, kBias = 127;

Type Numbers::like(Type element) const {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

Value Numbers::constant(FloatType element, double value) {
  TypedAttr scalar = b.getFloatAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(like(element)))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, scalar);
}

Value Numbers::integer(int64_t value) {
  TypedAttr scalar = b.getI32IntegerAttr(int32_t(value));
  if (auto vector = dyn_cast<VectorType>(like(b.getI32Type())))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, scalar);
}

Value Numbers::fma(Value x, Value y, Value z) {
  return create<::mlir::math::FmaOp>(x, y, z);
}
Value Numbers::abs(Value x) { return create<::mlir::math::AbsFOp>(x); }
Value Numbers::sqrt(Value x) { return create<::mlir::math::SqrtOp>(x); }
Value Numbers::copySign(Value magnitude, Value sign) {
  return create<::mlir::math::CopySignOp>(magnitude, sign);
}
Value Numbers::round(Value x) { return create<::mlir::math::RoundEvenOp>(x); }

Value Numbers::less(Value x, Value y) {
  return create<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, y);
}
Value Numbers::equal(Value x, Value y) {
  return create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, y);
}
Value Numbers::isNaN(Value x) {
  return create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
}
Value Numbers::select(Value condition, Value yes, Value no) {
  return create<arith::SelectOp>(condition, yes, no);
}
Value Numbers::clamp(Value x, Value least, Value most) {
  x = select(less(x, least), least, x);
  return select(less(most, x), most, x);
}

Value Numbers::fromBits(Value bits) {
  return arith::BitcastOp::create(b, type, bits);
}
Value Numbers::andBits(Value x, int64_t mask) {
  return create<arith::AndIOp>(x, integer(mask));
}
Value Numbers::shiftLeft(Value x, int64_t by) {
  return create<arith::ShLIOp>(x, integer(by));
}
Value Numbers::shiftRight(Value x, int64_t by) {
  return create<arith::ShRSIOp>(x, integer(by));
}
Value Numbers::isZero(Value bits) {
  return create<arith::CmpIOp>(arith::CmpIPredicate::eq, bits, integer(0));
}
Value Numbers::toFloat(Value bits) {
  return arith::SIToFPOp::create(b, type, bits);
}
Value Numbers::powerOfTwo(Value i) {
  return fromBits(shiftLeft(addBits(i, integer(kBias)), kMantissaBits));
}
Value Numbers::scale(Value x, Value i) {
  Value half = shiftRight(i, 1);
  Value scaled = mul(x, powerOfTwo(half));
  return mul(scaled, powerOfTwo(subBits(i, half)));
}

Value Numbers::widen(Value x) {
  return arith::ExtFOp::create(b, like(b.getF64Type()), x);
}
Value Numbers::narrow(Value x) { return arith::TruncFOp::create(b, type, x); }
Value Numbers::wideFromInteger(Value i) {
  return arith::SIToFPOp::create(b, like(b.getF64Type()), i);
}
Value Numbers::lowBits(Value wide) {
  return cast<arith::TruncIOp>(32, cast<arith::BitcastOp>(64, wide));
}

Value Numbers::polynomial(Value x, ArrayRef<double> coefficients) {
  bool isWide = getElementTypeOrSelf(x.getType()).isF64();
  auto constant = [&](double value) {
    return isWide ? wideNumber(value) : number(value);
  };
  Value sum = constant(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = fma(sum, x, constant(coefficient));
  return sum;
}

/// Bits rather than a conversion, which has no defined result for NaN.
static Rounded unshift(Numbers &n, Value shifted) {
  Value rounder = n.number(kRounder);
  return {n.subBits(n.bitsOf(shifted), n.bitsOf(rounder)),
          n.sub(shifted, rounder)};
}

Rounded mlir::mp::functions::nearestInteger(Numbers &n, Value x) {
  return unshift(n, n.add(x, n.number(kRounder)));
}

Rounded mlir::mp::functions::nearestInteger(Numbers &n, Value x,
                                            double factor) {
  return unshift(n, n.fma(x, n.number(factor), n.number(kRounder)));
}

Rounded mlir::mp::functions::nearestIntegerOfWide(Numbers &n, Value x) {
  Value rounder = n.wideNumber(kWideRounder);
  Value shifted = n.add(x, rounder);
  return {n.lowBits(shifted), n.sub(shifted, rounder)};
}
