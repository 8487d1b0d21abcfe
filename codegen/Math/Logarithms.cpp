//===- Logarithms.cpp - log, log1p, pow and roots -------------------------===//
//
// x = 2^k m with m from 1 / sqrt 2 to sqrt 2; log x = k ln 2 + log(1 + f) with
// f = m - 1.
//
//===----------------------------------------------------------------------===//

#include "codegen/Math/Numbers.h"

#include <limits>

using namespace mlir;
using namespace mlir::mp;
using functions::Numbers;
using functions::Rounded;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
static constexpr double kLn2High = 0x1.62e43p-1, kLn2Low = -0x1.05c61p-29;
/// The bits of 1 / sqrt 2.
static constexpr int64_t kRootHalfBits = 0x3f3504f3;
static constexpr double kLeastNormal = 0x1p-126;

/// The k of a normal number.
static Value exponentOf(Numbers &n, Value x) {
  return n.shiftRight(n.subBits(n.bitsOf(x), n.integer(kRootHalfBits)), 23);
}

/// k ln 2 + log(1 + f + low) for a small `low`. The sum of the large parts is
/// kept with what its rounding loses.
static Value logOfParts(Numbers &n, Value k, Value f, Value low) {
  // log(1 + f) = f - f^2 / 2 + f^3 p.
  Value p = n.polynomial(f, {0x1.1478e2p-4, -0x1.de0c88p-4, 0x1.e6c34cp-4,
                             -0x1.fc2796p-4, 0x1.233b64p-3, -0x1.555c48p-3,
                             0x1.99a478p-3, -0x1.000006p-2, 0x1.555548p-2});
  Value cube = n.mul(n.mul(f, f), f);
  Value rest = n.fma(n.mul(f, n.number(-0.5)), f, n.mul(cube, p));
  if (low)
    rest = n.add(rest, low);
  rest = n.fma(k, n.number(kLn2Low), rest);
  Value ln2 = n.number(kLn2High), sum = n.fma(k, ln2, f);
  Value lost = n.add(n.fma(k, ln2, n.neg(sum)), f);
  return n.add(sum, n.add(lost, rest));
}

/// What is infinite or not defined: at `pole`, below it, and at infinity.
static Value withLimits(Numbers &n, Value result, Value x, double pole) {
  Value infinity = n.number(kInfinity), least = n.number(pole);
  result = n.select(n.equal(x, infinity), infinity, result);
  result = n.select(n.equal(x, least), n.number(-kInfinity), result);
  result = n.select(n.less(x, least), n.number(kNaN), result);
  return n.select(n.isNaN(x), x, result);
}

namespace {
/// x = 2^k m, k as an integer.
struct Split {
  Value k, m;
};
} // namespace

/// Of a positive number; subnormal ones are scaled first.
static Split split(Numbers &n, Value x) {
  Value isSmall = n.less(x, n.number(kLeastNormal));
  Value normal = n.select(isSmall, n.mul(x, n.number(0x1p23)), x);
  Value k = exponentOf(n, normal);
  Value m = n.fromBits(n.subBits(n.bitsOf(normal), n.shiftLeft(k, 23)));
  Value shift = n.select(isSmall, n.integer(23), n.integer(0));
  return {n.subBits(k, shift), m};
}

Value functions::log(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0];
  Split parts = split(n, x);
  Value f = n.sub(parts.m, n.number(1));
  return withLimits(n, logOfParts(n, n.toFloat(parts.k), f, Value()), x, 0);
}

/// m - 1 = x 2^-k + (2^-k - 1), and what is lost to rounding it.
Value functions::log1p(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0], one = n.number(1);
  Value k = exponentOf(n, n.add(x, one));
  // 2^-k in two factors: k may be 128.
  Value half = n.shiftRight(k, 1);
  Value first = n.powerOfTwo(n.subBits(n.integer(0), half));
  Value second = n.powerOfTwo(n.subBits(half, k));
  Value scaled = n.mul(x, first);
  Value ones = n.fma(first, second, n.neg(one));
  Value f = n.fma(scaled, second, ones);
  Value low = n.fma(scaled, second, n.sub(ones, f));
  low = n.fma(n.neg(f), low, low);
  Value result = withLimits(n, logOfParts(n, n.toFloat(k), f, low), x, -1);
  return n.select(n.equal(x, n.number(0)), x, result);
}

/// log2 of a positive number in f64: k + 2 atanh((m - 1) / (m + 1)) / ln 2.
static Value wideLog2(Numbers &n, Value x) {
  Split parts = split(n, x);
  Value m = n.widen(parts.m), one = n.wideNumber(1);
  Value z = n.div(n.sub(m, one), n.add(m, one));
  Value series =
      n.polynomial(n.mul(z, z), {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                                 1.0 / 5, 1.0 / 3, 1});
  return n.fma(n.mul(series, z), n.wideNumber(2.885390081777926815),
               n.wideFromInteger(parts.k));
}

/// 2^t of a f64.
static Value exp2OfWide(Numbers &n, Value t) {
  t = n.clamp(t, n.wideNumber(-151), n.wideNumber(129));
  Rounded i = functions::nearestIntegerOfWide(n, t);
  Value f = n.narrow(n.sub(t, i.number));
  return n.scale(functions::exp2OfFraction(n, f), i.integer);
}

/// The sign of a power of a negative number, and NaN where there is none.
static Value withSign(Numbers &n, Value result, Value x, Value y) {
  Value isInteger = n.equal(n.round(y), y);
  Value halved = n.mul(y, n.number(0.5));
  Value isEven = n.equal(n.round(halved), halved);
  // -1, or 1 for +0 and -0.
  Value sign = n.copySign(n.number(1), x);
  Value isNegative = n.less(sign, n.number(0));
  Value isOdd = n.both(isInteger, n.differ(isEven, isInteger));
  result = n.select(n.both(isNegative, isOdd), n.neg(result), result);
  Value isFiniteNegative =
      n.both(n.less(x, n.number(0)), n.less(n.number(-kInfinity), x));
  Value isReal = n.select(isInteger, result, n.number(kNaN));
  return n.select(isFiniteNegative, isReal, result);
}

Value functions::pow(Numbers &n, ArrayRef<Value> arguments) {
  Value x = arguments[0], y = arguments[1], one = n.number(1);
  Value magnitude = n.abs(x), infinity = n.number(kInfinity);
  Value log2 = wideLog2(n, magnitude);
  log2 =
      n.select(n.equal(magnitude, n.number(0)), n.wideNumber(-kInfinity), log2);
  log2 = n.select(n.equal(magnitude, infinity), n.wideNumber(kInfinity), log2);
  Value t = n.mul(log2, n.widen(y));
  // Also to an infinite power.
  t = n.select(n.equal(magnitude, one), n.wideNumber(0), t);
  Value result = withSign(n, exp2OfWide(n, t), x, y);
  result = n.select(n.isNaN(x), x, result);
  return n.select(n.equal(y, n.number(0)), one, result);
}

/// As PyTorch computes it on CPUs.
Value functions::rsqrt(Numbers &n, ArrayRef<Value> arguments) {
  return n.div(n.number(1), n.sqrt(arguments[0]));
}
