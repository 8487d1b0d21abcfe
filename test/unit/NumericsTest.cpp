//===- NumericsTest.cpp - conversions between float formats ---------------===//

#include "runtime/Numerics.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mpopt;
using llvm::APFloat;
using llvm::APInt;

/// The same numbers on every run.
static std::mt19937_64 sequence(uint64_t seed) { return std::mt19937_64(seed); }

/// The encoding in `to` of the value that `bits` encodes in `from`.
static uint64_t convertByAPFloat(const llvm::fltSemantics &from, uint64_t bits,
                                 const llvm::fltSemantics &to) {
  APFloat value(from, APInt(APFloat::semanticsSizeInBits(from), bits));
  bool losesInfo = false;
  value.convert(to, APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

static bool isNaN16(uint16_t bits, uint16_t infinity) {
  return (bits & 0x7fff) > infinity;
}

// Narrowing sets the quiet bit of a NaN; every other encoding comes back.
TEST(Numerics, EveryF16WidensAndNarrowsBack) {
  for (uint32_t i = 0; i != 0x10000; ++i) {
    uint16_t bits = i;
    uint16_t back = isNaN16(bits, 0x7c00) ? bits | 0x0200 : bits;
    ASSERT_EQ(f32ToF16(f16ToF32(bits)), back) << i;
    ASSERT_EQ(f64ToF16(f16ToF64(bits)), back) << i;
    ASSERT_EQ(
        bitsOf(f16ToF32(bits)) | (back != bits ? 0x400000 : 0),
        convertByAPFloat(APFloat::IEEEhalf(), bits, APFloat::IEEEsingle()))
        << i;
    ASSERT_EQ(f16ToBF16(bits),
              convertByAPFloat(APFloat::IEEEhalf(), bits, APFloat::BFloat()))
        << i;
  }
}

TEST(Numerics, EveryBF16WidensAndNarrowsBack) {
  for (uint32_t i = 0; i != 0x10000; ++i) {
    uint16_t bits = i;
    uint16_t back = isNaN16(bits, 0x7f80) ? bits | 0x0040 : bits;
    ASSERT_EQ(f32ToBF16(bf16ToF32(bits)), back) << i;
    ASSERT_EQ(f64ToBF16(bf16ToF64(bits)), back) << i;
    ASSERT_EQ(bf16ToF16(bits),
              convertByAPFloat(APFloat::BFloat(), bits, APFloat::IEEEhalf()))
        << i;
  }
}

// Every f32 exponent with random fractions, and the fractions next to each tie.
TEST(Numerics, F32NarrowsAsAPFloatDoes) {
  std::mt19937_64 random = sequence(1);
  for (int i = 0; i != 1000000; ++i) {
    uint32_t bits = random();
    if (i % 2)
      bits = (bits & 0xffff8000) | (0x0fff + i % 3) | (bits & 0x7000);
    float value = floatOf(bits);
    ASSERT_EQ(f32ToF16(value), convertByAPFloat(APFloat::IEEEsingle(), bits,
                                                APFloat::IEEEhalf()))
        << bits;
    ASSERT_EQ(f32ToBF16(value),
              convertByAPFloat(APFloat::IEEEsingle(), bits, APFloat::BFloat()))
        << bits;
  }
}

/// A random f64 whose exponent is near those of the narrower formats.
static uint64_t randomF64(std::mt19937_64 &random, int spread) {
  uint64_t bits = random();
  uint64_t exponent = 1023 - spread + (bits >> 52) % (uint64_t(2) * spread);
  return (bits & 0x800fffffffffffff) | exponent << 52;
}

TEST(Numerics, F64NarrowsOnceAsAPFloatDoes) {
  std::mt19937_64 random = sequence(2);
  for (int i = 0; i != 300000; ++i) {
    uint64_t bits = randomF64(random, i % 2 ? 30 : 170);
    if (i % 3 == 0) // a tie, or one bit beside it
      bits = (bits & ~uint64_t(0x3ffffffffff)) | uint64_t(0x20000000000) |
             (bits & 1);
    double value = doubleOf(bits);
    const auto &f64 = APFloat::IEEEdouble();
    ASSERT_EQ(f64ToF16(value), convertByAPFloat(f64, bits, APFloat::IEEEhalf()))
        << bits;
    ASSERT_EQ(f64ToBF16(value), convertByAPFloat(f64, bits, APFloat::BFloat()))
        << bits;
    ASSERT_EQ(bitsOf(f64ToF32(value)),
              convertByAPFloat(f64, bits, APFloat::IEEEsingle()))
        << bits;
  }
}

// Hardware converts f32 and f64 as well: a second witness for many values.
TEST(Numerics, AgreesWithHardware) {
  std::mt19937_64 random = sequence(3);
  for (int i = 0; i != 10000000; ++i) {
    uint64_t bits = randomF64(random, 170);
    double value = doubleOf(bits);
    ASSERT_EQ(bitsOf(f64ToF32(value)), bitsOf(float(value))) << bits;
    float single = floatOf(uint32_t(bits));
    if (!std::isnan(single))
      ASSERT_EQ(bitsOf(f32ToF64(single)), bitsOf(double(single))) << bits;
  }
}

TEST(Numerics, DoubleRoundingThroughF16Differs) {
  // 1 + 2^-8 + 2^-23: down to 1 + 2^-8 in f16, then to even in bf16.
  float value = floatOf(0x3f808001);
  EXPECT_EQ(roundToBF16(roundToF16(value)), 1.0);
  EXPECT_EQ(roundToBF16(value), 1.0078125);
  EXPECT_EQ(roundToBF16(roundToF16(1e5)), HUGE_VAL);
  EXPECT_EQ(roundToBF16(1e5), 99840);
  EXPECT_EQ(roundToBF16(roundToF16(1e-9)), 0);
  EXPECT_NEAR(roundToBF16(1e-9), 9.968e-10, 5e-14);
}

TEST(Numerics, BordersOfF16) {
  EXPECT_EQ(roundToF16(65519), 65504);
  EXPECT_EQ(roundToF16(65520), HUGE_VAL);
  EXPECT_EQ(roundToF16(-65504 - 16), -HUGE_VAL);
  EXPECT_EQ(roundToF16(-65504 - 15), -65504);
  EXPECT_EQ(f64ToF16(0x1p-24), 1);
  EXPECT_EQ(roundToF16(1e-8), 0);
  EXPECT_EQ(f64ToF16(-1e-8), 0x8000);
  EXPECT_EQ(roundToF16(1e-4 * 1e-4), 0);
  EXPECT_EQ(roundToF16(2e-4 * 2e-4), 0x1p-24);
  EXPECT_LT(roundToF16(255.936 * 255.936), 65505);
  EXPECT_EQ(roundToF16(255.969 * 255.969), HUGE_VAL);
}

TEST(Numerics, BetweenTheHalves) {
  // Exact within the normal range of f16, not beyond.
  for (uint32_t bits = 0x3880; bits <= 0x477f; ++bits)
    ASSERT_EQ(f16ToF64(bf16ToF16(bits)), bf16ToF64(bits)) << bits;
  EXPECT_EQ(f16ToF64(bf16ToF16(f64ToBF16(1e5))), HUGE_VAL);
  EXPECT_EQ(bf16ToF16(f64ToBF16(1e-8)), 0);
  EXPECT_EQ(bf16ToF64(f16ToBF16(f64ToF16(1.0009765625))), 1.0);
}

TEST(Numerics, ExactIntegers) {
  for (int i = 0; i <= 256; ++i)
    EXPECT_EQ(roundToBF16(i), i);
  EXPECT_EQ(roundToBF16(257), 256);
  for (int i = 0; i <= 2048; ++i)
    EXPECT_EQ(roundToF16(i), i);
  EXPECT_EQ(roundToF16(2049), 2048);
  double large = 2147483648.0 + 8388608 + 1; // 2^31 + 2^23 + 1
  EXPECT_EQ(roundToBF16(roundToF32(large)), 2147483648.0);
  EXPECT_EQ(roundToBF16(large), 2164260864.0);
}
