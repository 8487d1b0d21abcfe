//===- Exponentials.cpp - exp and what is made of it ----------------------===//
//
// exp(x) = 2^i exp(r) with x = i ln 2 + r and |r| <= ln 2 / 2. Coefficients are
// minimax polynomials, rounded to f32 one after the other.
//
//===----------------------------------------------------------------------===//

#include "codegen/Math/Numbers.h"

using namespace mlir;
using namespace mlir::mp;
using functions::Numbers;
using functions::Rounded;

static constexpr double kLog2E = 0x1.715476p+0;
/// ln 2 = high + low; the high part times an integer is exact in the sum that
/// it is part of.
static constexpr double kLn2High = 0x1.62e43p-1, kLn2Low = -0x1.05c61p-29;

namespace {
/// x = i ln 2 + r.
struct Reduced {
  Rounded i;
  Value r;
};
} // namespace

static Reduced reduce(Numbers &n, Value x) {
  Rounded i = functions::nearestInteger(n, x, kLog2E);
  Value high = n.fma(i.number, n.number(-kLn2High), x);
  return {i, n.fma(i.number, n.number(-kLn2Low), high)};
}

Value functions::expInRange(Numbers &n, Value x) {
  Reduced reduced = reduce(n, x);
  Value r = reduced.r;
  // exp(r) = 1 + (r + r^2 q).
  Value q = n.polynomial(r, {0x1.6a5134p-10, 0x1.12397cp-7, 0x1.5558acp-5,
                             0x1.555492p-3, 0x1.fffffcp-2});
  Value rest = n.fma(n.mul(r, r), q, r);
  return n.scale(n.add(rest, n.number(1)), reduced.i.integer);
}

Value functions::exp(Numbers &n, ArrayRef<Value> arguments) {
  return expInRange(n, n.clamp(arguments[0], n.number(-104), n.number(89)));
}

Value functions::exp2OfFraction(Numbers &n, Value f) {
  return n.polynomial(f, {0x1.416b7ep-13, 0x1.5f0838p-10, 0x1.3b2de0p-7,
                          0x1.c6af7cp-5, 0x1.ebfbdcp-3, 0x1.62e43p-1, 1});
}

Value functions::exp2(Numbers &n, ArrayRef<Value> arguments) {
  Value x = n.clamp(arguments[0], n.number(-151), n.number(129));
  Rounded i = nearestInteger(n, x);
  return n.scale(exp2OfFraction(n, n.sub(x, i.number)), i.integer);
}

/// 2^i (p + 1) - 1 = 2 (h p + (h - 1/2)) with h = 2^(i - 1), as the sum of
/// three parts of which the first two are exact.
Value functions::expm1(Numbers &n, ArrayRef<Value> arguments) {
  Value x = n.clamp(arguments[0], n.number(-20), n.number(89));
  Rounded i = nearestInteger(n, x, kLog2E);
  Value high = n.fma(i.number, n.number(-kLn2High), x);
  Value low = n.mul(i.number, n.number(-kLn2Low));
  Value r = n.add(high, low);
  Value q = n.polynomial(r, {0x1.9e69ecp-13, 0x1.6d3a38p-10, 0x1.1112dcp-7,
                             0x1.5554f8p-5, 0x1.555554p-3, 0x1p-1});
  Value rest = n.fma(n.mul(r, r), q, low);
  Value h = n.powerOfTwo(n.subBits(i.integer, n.integer(1)));
  Value ones = n.sub(h, n.number(0.5));
  Value sum = n.fma(h, high, ones);
  Value lost = n.fma(h, high, n.sub(ones, sum));
  Value half = n.add(sum, n.fma(h, rest, lost));
  // The half of a subnormal may not be a number; -0 stays.
  Value isTiny = n.less(n.abs(x), n.number(0x1p-60));
  return n.select(isTiny, x, n.add(half, half));
}

/// x + x^3 p(x^2) near zero, else 1 - 2 / (exp(2 |x|) + 1).
Value functions::tanh(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0], magnitude = n.abs(x), square = n.mul(x, x);
  Value p = n.polynomial(square, {-0x1.750ce2p-8, 0x1.51f8cep-6, -0x1.b835a4p-5,
                                  0x1.1106f6p-3, -0x1.555532p-2});
  Value near = n.fma(n.mul(p, square), x, x);
  Value most = n.number(9.5);
  Value limited = n.select(n.less(most, magnitude), most, magnitude);
  Value e = expInRange(n, n.add(limited, limited));
  Value quotient = n.div(n.number(2), n.add(e, n.number(1)));
  Value far = n.sub(n.number(1), quotient);
  // -0 as well.
  return n.copySign(n.select(n.less(magnitude, n.number(0.625)), near, far), x);
}

/// x + x p(x^2) near zero, else 1 - exp(-|x| + |x| p(|x|)).
Value functions::erf(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0], magnitude = n.abs(x), square = n.mul(x, x);
  Value p =
      n.polynomial(square, {-0x1.38741cp-11, 0x1.46d9e2p-8, -0x1.b67c04p-6,
                            0x1.ce1986p-4, -0x1.8126e2p-2, 0x1.06eba6p-3});
  Value near = n.fma(p, x, x);
  Value most = n.number(4);
  Value t = n.select(n.less(most, magnitude), most, magnitude);
  Value exponent =
      n.polynomial(t, {0x1.c0c5a2p-13, -0x1.a56532p-9, 0x1.7707c8p-6,
                       -0x1.af271ep-4, -0x1.457cdep-1, -0x1.07328ap-3});
  exponent = n.fma(exponent, t, n.neg(t));
  Value far = n.sub(n.number(1), expInRange(n, exponent));
  return n.copySign(n.select(n.less(magnitude, n.number(0.93)), near, far), x);
}
