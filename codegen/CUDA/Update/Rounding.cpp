//===- Rounding.cpp - formats of weights and moments ----------------------===//

#include "codegen/CUDA/Update/Rounding.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static Value isNaNBits(const Numbers &n, Value bits) {
  return n.isAbove(n.both(bits, 0x7fffffff), 0x7f800000);
}

std::pair<Value, Value> cuda::splitBF16(ImplicitLocOpBuilder &b, Value value) {
  Numbers n(b);
  Type half = b.getIntegerType(16);
  Value bits = n.bitsAs(b.getI32Type(), value);
  Value isNaN = isNaNBits(n, bits);
  Value rounded = n.down(n.plus(bits, 0x8000), 16);
  Value quiet = n.either(n.down(bits, 16), 0x40);
  Value high = n.select(isNaN, quiet, rounded);
  Value low = n.select(isNaN, n.integer(0, bits), bits);
  return {n.narrow(half, high), n.narrow(half, low)};
}

Value cuda::joinBF16(ImplicitLocOpBuilder &b, Value high, Value low) {
  Numbers n(b);
  Type word = b.getI32Type();
  Value wideLow = n.widen(word, low);
  Value upper = n.minus(n.widen(word, high), n.down(wideLow, 15));
  return n.bitsAs(b.getF32Type(), n.either(n.up(upper, 16), wideLow));
}

Value cuda::roundBF16Stochastic(ImplicitLocOpBuilder &b, Value value,
                                Value random) {
  Numbers n(b);
  Value bits = n.bitsAs(b.getI32Type(), value);
  Value zero = n.integer(0, bits);
  Value isSpecial = n.isEqual(n.both(bits, 0x7f800000), 0x7f800000);
  Value up = n.select(isSpecial, zero, n.both(random, 0xffff));
  Value quiet = n.select(isNaNBits(n, bits), n.integer(0x40, bits), zero);
  return n.narrow(b.getIntegerType(16),
                  n.either(n.down(n.plus(bits, up), 16), quiet));
}

/// The f16 magnitude of a number below the least normal one: a multiple of
/// 2^-24.
static Value roundSubnormal(ImplicitLocOpBuilder &b, Value magnitude,
                            Value exponent, Value random) {
  Numbers n(b);
  Value significand = n.either(n.both(magnitude, 0x7fffff), 0x800000);
  Value cut = n.minus(n.integer(13 + 127 - 14, exponent), exponent);
  // Up to 31 bits are cut off ...
  Value few = n.least(cut, 31);
  Value mask = n.minus(n.up(n.integer(1, few), few), 1);
  Value some = n.down(n.plus(significand, n.both(random, mask)), few);
  // ... or more than a random word has: then only a carry matters.
  Value wide = n.up(n.widen(b.getI64Type(), significand), 32);
  Value many = n.widen(b.getI64Type(), n.least(cut, 63));
  Value tiny = n.narrow(b.getI32Type(), n.down(wide, many));
  Value carry = n.isBelow(n.plus(random, tiny), random);
  Value one = n.widen(b.getI32Type(), carry);
  Value result = n.select(n.isAbove(cut, 31), one, some);
  return n.select(n.isEqual(exponent, 0), n.integer(0, result), result);
}

Value cuda::roundF16Stochastic(ImplicitLocOpBuilder &b, Value value,
                               Value random) {
  Numbers n(b);
  Type half = b.getIntegerType(16);
  Value bits = n.bitsAs(b.getI32Type(), value);
  Value magnitude = n.both(bits, 0x7fffffff);
  Value exponent = n.down(magnitude, 23);
  Value moved = n.down(n.plus(magnitude, n.both(random, 0x1fff)), 13);
  Value normal = n.minus(moved, (127 - 15) << 10);
  Value isNormal = n.isAbove(exponent, 127 - 14 - 1);
  Value rounded = n.select(isNormal, normal,
                           roundSubnormal(b, magnitude, exponent, random));
  Value sign = n.up(n.down(bits, 31), 15);
  Value stochastic = n.narrow(half, n.either(sign, rounded));
  // Beyond the largest f16, also inf and NaN: to nearest.
  Value nearest = n.bitsAs(half, n.narrow(b.getF16Type(), value));
  return n.select(n.isAbove(magnitude, 0x477fe000), nearest, stochastic);
}

Value cuda::randomWords(ImplicitLocOpBuilder &b, Value key, Value index) {
  Numbers n(b);
  Type word = b.getI32Type();
  Value upper = n.narrow(word, n.down(index, 32));
  Value mixed =
      n.differ(n.narrow(word, key), n.times(upper, uint64_t(0x9e3779b1)));
  Value second = n.narrow(word, n.down(key, 32));
  Value x = n.differ(n.narrow(word, index), mixed);
  for (int round = 0; round != 2; ++round) {
    x = n.differ(x, n.down(x, 16));
    x = n.times(x, uint64_t(0x7feb352d));
    x = n.differ(x, n.down(x, 15));
    x = n.times(x, uint64_t(0x846ca68b));
    x = n.differ(x, n.down(x, 16));
    x = n.plus(x, second);
  }
  return x;
}
