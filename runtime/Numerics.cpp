//===- Numerics.cpp - conversions between float formats -------------------===//

#include "runtime/Numerics.h"

#include <cstring>

using namespace mpopt;

namespace {
/// A binary interchange format: one sign bit, `Exponent` bits, `Fraction` bits.
template <int Exponent, int Fraction>
struct Format {
  static constexpr int exponentBits = Exponent;
  static constexpr int fractionBits = Fraction;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr uint64_t maxExponent = (uint64_t(1) << Exponent) - 1;
  static constexpr uint64_t fractionMask = (uint64_t(1) << Fraction) - 1;
  static constexpr uint64_t quietBit = uint64_t(1) << (Fraction - 1);
  static constexpr uint64_t infinity = maxExponent << Fraction;
  static constexpr int signShift = Exponent + Fraction;
};
using F64 = Format<11, 52>;
using F32 = Format<8, 23>;
using F16 = Format<5, 10>;
using BF16 = Format<8, 7>;
} // namespace

/// `value >> shift`, to nearest, ties to even.
static uint64_t shiftRightRounding(uint64_t value, int shift) {
  if (shift >= 64)
    return 0; // far below half of the last place
  uint64_t kept = value >> shift;
  uint64_t lost = value & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  if (lost > half || (lost == half && (kept & 1)))
    ++kept; // may carry into the exponent, which is then right as well
  return kept;
}

/// The encoding in `To` of the f64 encoding `bits`.
template <typename To>
static uint64_t narrow(uint64_t bits) {
  uint64_t sign = bits >> F64::signShift << To::signShift;
  uint64_t exponent = bits >> F64::fractionBits & F64::maxExponent;
  uint64_t fraction = bits & F64::fractionMask;
  constexpr int dropped = F64::fractionBits - To::fractionBits;

  if (exponent == F64::maxExponent) {
    if (fraction == 0)
      return sign | To::infinity;
    return sign | To::infinity | To::quietBit | fraction >> dropped;
  }
  // An f64 subnormal is far below the smallest value of any narrower format.
  if (exponent == 0)
    return sign;
  int target = int(exponent) - F64::bias + To::bias;
  if (target >= int(To::maxExponent))
    return sign | To::infinity;
  if (target >= 1)
    return sign |
           shiftRightRounding(uint64_t(target) << F64::fractionBits | fraction,
                              dropped);
  // Subnormal in `To`: the implied leading one becomes part of the fraction.
  uint64_t significand = fraction | uint64_t(1) << F64::fractionBits;
  return sign | shiftRightRounding(significand, dropped + 1 - target);
}

/// The encoding in `To` of the encoding `bits` in the narrower `From`.
template <typename From, typename To>
static uint64_t widen(uint64_t bits) {
  uint64_t sign = bits >> From::signShift << To::signShift;
  uint64_t exponent = bits >> From::fractionBits & From::maxExponent;
  uint64_t fraction = bits & From::fractionMask;
  constexpr int added = To::fractionBits - From::fractionBits;

  if (exponent == From::maxExponent)
    return sign | To::infinity | fraction << added;
  if (exponent != 0)
    return sign | (exponent + To::bias - From::bias) << To::fractionBits |
           fraction << added;
  if (fraction == 0)
    return sign;
  // bf16 and f32 share their exponents, so a subnormal stays one.
  if (From::exponentBits == To::exponentBits)
    return sign | fraction << added;
  int shift = 0;
  while (!(fraction >> From::fractionBits & 1)) {
    fraction <<= 1;
    ++shift;
  }
  uint64_t target = 1 - shift + To::bias - From::bias;
  return sign | target << To::fractionBits |
         (fraction & From::fractionMask) << added;
}

uint32_t mpopt::bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
uint64_t mpopt::bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float mpopt::floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
double mpopt::doubleOf(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float mpopt::f16ToF32(uint16_t bits) {
  return floatOf(uint32_t(widen<F16, F32>(bits)));
}
float mpopt::bf16ToF32(uint16_t bits) {
  return floatOf(uint32_t(widen<BF16, F32>(bits)));
}
double mpopt::f16ToF64(uint16_t bits) {
  return doubleOf(widen<F16, F64>(bits));
}
double mpopt::bf16ToF64(uint16_t bits) {
  return doubleOf(widen<BF16, F64>(bits));
}
double mpopt::f32ToF64(float value) {
  return doubleOf(widen<F32, F64>(bitsOf(value)));
}

float mpopt::f64ToF32(double value) {
  return floatOf(uint32_t(narrow<F32>(bitsOf(value))));
}
uint16_t mpopt::f64ToF16(double value) { return narrow<F16>(bitsOf(value)); }
uint16_t mpopt::f64ToBF16(double value) { return narrow<BF16>(bitsOf(value)); }
uint16_t mpopt::f32ToF16(float value) {
  return narrow<F16>(widen<F32, F64>(bitsOf(value)));
}
uint16_t mpopt::f32ToBF16(float value) {
  return narrow<BF16>(widen<F32, F64>(bitsOf(value)));
}

uint16_t mpopt::f16ToBF16(uint16_t bits) {
  return narrow<BF16>(widen<F16, F64>(bits));
}
uint16_t mpopt::bf16ToF16(uint16_t bits) {
  return narrow<F16>(widen<BF16, F64>(bits));
}

double mpopt::roundToF32(double value) { return f32ToF64(f64ToF32(value)); }
double mpopt::roundToF16(double value) { return f16ToF64(f64ToF16(value)); }
double mpopt::roundToBF16(double value) { return bf16ToF64(f64ToBF16(value)); }
