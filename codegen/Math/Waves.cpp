//===- Waves.cpp - sine and cosine ----------------------------------------===//

#include "codegen/Math/Numbers.h"

using namespace mlir;
using namespace mlir::mp;
using functions::Numbers;
using functions::Rounded;

/// pi / 2 = high + low, to 106 bits.
static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1,
                        kHalfPiHigh = 0x1.921fb54442d18p+0,
                        kHalfPiLow = 0x1.1a62633145c07p-54;

/// sin(x + quarters pi / 2). x = i pi / 2 + r, in f64: the difference of large
/// numbers needs the bits.
static Value wave(Numbers &n, Value x, int64_t quarters) {
  Value wide = n.widen(x);
  Rounded i =
      functions::nearestIntegerOfWide(n, n.mul(wide, n.wideNumber(kTwoOverPi)));
  Value high = n.fma(i.number, n.wideNumber(-kHalfPiHigh), wide);
  Value r = n.narrow(n.fma(i.number, n.wideNumber(-kHalfPiLow), high));
  Value square = n.mul(r, r);
  Value p =
      n.polynomial(square, {-0x1.9954p-13, 0x1.110778p-7, -0x1.555546p-3});
  Value sine = n.fma(n.mul(p, square), r, r);
  Value q = n.polynomial(
      square, {0x1.99e80cp-16, -0x1.6c0c28p-10, 0x1.55554ap-5, -0.5, 1});
  Value quarter = n.addBits(i.integer, n.integer(quarters));
  Value result = n.select(n.isZero(n.andBits(quarter, 1)), sine, q);
  return n.select(n.isZero(n.andBits(quarter, 2)), result, n.neg(result));
}

Value functions::sin(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0];
  // -0 stays.
  return n.select(n.equal(x, n.number(0)), x, wave(n, x, 0));
}

Value functions::cos(Numbers &n, ArrayRef<Value> arguments) {
  return wave(n, arguments[0], 1);
}
