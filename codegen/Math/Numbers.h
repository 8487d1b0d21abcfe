//===- Numbers.h - arithmetic of functions ----------------------*- C++ -*-===//
//
// Short names for the arithmetic that functions are made of, on f32 or vectors
// of it. No operation may be contracted or reordered: each rounds as written.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_MATH_NUMBERS_H
#define MP_CODEGEN_MATH_NUMBERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp::functions {

class Numbers {
public:
  /// For values of `type`, f32 or a vector of it.
  Numbers(ImplicitLocOpBuilder &b, Type type) : b(b), type(type) {}

  // Constants; of f64 if they meet `wide` values.
  Value number(double value) { return constant(b.getF32Type(), value); }
  Value wideNumber(double value) { return constant(b.getF64Type(), value); }
  Value integer(int64_t value);

  Value add(Value x, Value y) { return create<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return create<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return create<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return create<arith::DivFOp>(x, y); }
  Value neg(Value x) { return create<arith::NegFOp>(x); }
  /// x * y + z, rounded once.
  Value fma(Value x, Value y, Value z);
  Value abs(Value x);
  Value sqrt(Value x);
  Value copySign(Value magnitude, Value sign);
  /// The nearest integer, ties to even.
  Value round(Value x);

  Value less(Value x, Value y);
  Value equal(Value x, Value y);
  Value isNaN(Value x);
  Value both(Value x, Value y) { return create<arith::AndIOp>(x, y); }
  Value differ(Value x, Value y) { return create<arith::XOrIOp>(x, y); }
  Value select(Value condition, Value yes, Value no);
  /// x, but not outside of [least, most]; NaN stays.
  Value clamp(Value x, Value least, Value most);

  // Bits, as i32.
  Value bitsOf(Value x) { return cast<arith::BitcastOp>(32, x); }
  Value fromBits(Value bits);
  Value addBits(Value x, Value y) { return create<arith::AddIOp>(x, y); }
  Value subBits(Value x, Value y) { return create<arith::SubIOp>(x, y); }
  Value andBits(Value x, int64_t mask);
  Value shiftLeft(Value x, int64_t by);
  /// Keeps the sign.
  Value shiftRight(Value x, int64_t by);
  Value isZero(Value bits);
  Value toFloat(Value bits);
  /// 2^i for an integer from -126 to 127.
  Value powerOfTwo(Value i);
  /// x * 2^i, rounded once, for an integer from -252 to 254.
  Value scale(Value x, Value i);

  // f64.
  Value widen(Value x);
  Value narrow(Value x);
  Value wideFromInteger(Value i);
  /// The low 32 bits of a f64.
  Value lowBits(Value wide);

  /// Coefficients from the highest power down to that of x^0.
  Value polynomial(Value x, ArrayRef<double> coefficients);

private:
  template <typename Op, typename... Operands>
  Value create(Operands... operands) {
    return Op::create(b, operands...);
  }
  /// To an integer of `bits` bits.
  template <typename Op>
  Value cast(unsigned bits, Value x) {
    return Op::create(b, like(b.getIntegerType(bits)), x);
  }
  /// `element` in the shape of `type`.
  Type like(Type element) const;
  Value constant(FloatType element, double value);

  ImplicitLocOpBuilder &b;
  Type type;
};

/// The integer nearest to a number of magnitude below 2^22, and the number.
struct Rounded {
  Value integer, number;
};

/// The nearest integer to `x`, or to the sum of a product.
Rounded nearestInteger(Numbers &n, Value x);
Rounded nearestInteger(Numbers &n, Value x, double factor);
/// The same of a f64.
Rounded nearestIntegerOfWide(Numbers &n, Value x);

/// exp of a number from -104 to 89, or of NaN.
Value expInRange(Numbers &n, Value x);
/// 2^f for |f| <= 1/2.
Value exp2OfFraction(Numbers &n, Value f);

// One function for each row of Functions.def, of its arguments.
#define MATH_FUNCTION(OP, NAME, WORST, LIMIT)                                  \
  Value NAME(Numbers &n, ArrayRef<Value> arguments);
#include "codegen/Math/Functions.def"

} // namespace mlir::mp::functions

#endif // MP_CODEGEN_MATH_NUMBERS_H
