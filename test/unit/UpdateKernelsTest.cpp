//===- UpdateKernelsTest.cpp - the inner loops of the update --------------===//

#include "runtime/Numerics.h"
#include "test/unit/UpdateFixtures.h"
#include "gtest/gtest.h"

#include <cmath>
#include <utility>

using namespace mpopt;
using namespace mpopt::update;

namespace {

/// Any bits, so that also subnormals, infinities and NaNs come up.
std::vector<float> anyFloats(size_t n, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<float> values(n);
  for (float &value : values)
    value = floatOf(uint32_t(generator()));
  return values;
}

/// Bits, in which all NaNs are one: which payload survives is not said.
std::vector<uint32_t> bitsOfAll(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (float value : values)
    bits.push_back(std::isnan(value) ? 0x7fc00000u : bitsOf(value));
  return bits;
}

TEST(UpdateKernels, ConvertAsNumericsSays) {
  std::vector<float> values = anyFloats(kBlock, 1);
  for (const Kernels *kernels : supported())
    for (size_t n : {size_t(1), size_t(15), size_t(17), kBlock}) {
      std::vector<uint16_t> f16(n), bf16(n);
      kernels->narrowF16(values.data(), f16.data(), n);
      kernels->narrowBF16(values.data(), bf16.data(), n);
      std::vector<float> wideF16(n), wideBF16(n);
      kernels->widenF16(f16.data(), wideF16.data(), n);
      kernels->widenBF16(bf16.data(), wideBF16.data(), n);
      for (size_t i = 0; i != n; ++i) {
        ASSERT_EQ(f16[i], f32ToF16(values[i])) << kernels->name;
        ASSERT_EQ(bf16[i], f32ToBF16(values[i])) << kernels->name;
        ASSERT_EQ(bitsOf(wideF16[i]), bitsOf(f16ToF32(f16[i])));
        ASSERT_EQ(bitsOf(wideBF16[i]), bitsOf(bf16ToF32(bf16[i])));
      }
    }
}

// Case 21.
TEST(UpdateKernels, HalvesOfAMasterJoinToTheSameBits) {
  for (const Kernels *kernels : supported()) {
    std::vector<float> values(kBlock), joined(kBlock);
    std::vector<uint16_t> high(kBlock), low(kBlock);
    // 1 in 251 of all patterns, beside each other's ties.
    for (uint64_t pattern = 0; pattern < (1ULL << 32);) {
      for (float &value : values) {
        value = floatOf(uint32_t(pattern));
        pattern += 251;
      }
      kernels->splitBF16(values.data(), high.data(), low.data(), kBlock);
      kernels->joinBF16(high.data(), low.data(), joined.data(), kBlock);
      for (size_t i = 0; i != kBlock; ++i) {
        if (std::isnan(values[i]))
          ASSERT_TRUE(std::isnan(joined[i]) && std::isnan(bf16ToF32(high[i])));
        else
          ASSERT_EQ(bitsOf(joined[i]), bitsOf(values[i])) << kernels->name;
      }
    }
    float tie = floatOf(0x3f808000), nan = floatOf(0xffffffff);
    kernels->splitBF16(&tie, high.data(), low.data(), 1);
    EXPECT_EQ(high[0], 0x3f81);
    kernels->splitBF16(&nan, high.data(), low.data(), 1);
    EXPECT_EQ(high[0], 0xffff);
  }
}

TEST(UpdateKernels, StochasticRoundingIsUnbiasedAndKeepsWhatFits) {
  const Kernels &kernels = bestKernels();
  constexpr size_t kDraws = 1 << 16;
  // A quarter of the way from one bf16 value to the next.
  std::vector<float> values(kBlock, floatOf(0x3f804000));
  std::vector<uint32_t> random(kBlock);
  std::vector<uint16_t> rounded(kBlock);
  size_t ups = 0;
  for (size_t first = 0; first != kDraws; first += kBlock) {
    kernels.randomWords(7, first, random.data(), kBlock);
    kernels.narrowBF16Stochastic(values.data(), random.data(), rounded.data(),
                                 kBlock);
    for (uint16_t bits : rounded) {
      ASSERT_TRUE(bits == 0x3f80 || bits == 0x3f81);
      ups += bits == 0x3f81;
    }
  }
  // Five standard deviations of a binomial distribution.
  EXPECT_NEAR(double(ups) / kDraws, 0.25, 5 * std::sqrt(0.1875 / kDraws));

  std::fill(random.begin(), random.end(), 0xffffffffu);
  std::vector<float> special = {1.5f, 0.0f, -0.0f, kF32Inf, -kF32Inf, kF32NaN};
  kernels.narrowBF16Stochastic(special.data(), random.data(), rounded.data(),
                               special.size());
  for (size_t i = 0; i != special.size(); ++i)
    EXPECT_EQ(rounded[i], f32ToBF16(special[i])) << special[i];
}

/// The f16 values around `value`: the nearest towards 0 and the next one.
std::pair<uint16_t, uint16_t> neighbours(float value) {
  uint16_t near = f32ToF16(std::abs(value));
  if (f16ToF32(near) > std::abs(value))
    --near;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  return {uint16_t(near | sign), uint16_t((near + 1) | sign)};
}

TEST(UpdateKernels, StochasticF16IsUnbiasedWhereverF16Is) {
  constexpr size_t kDraws = 1 << 15;
  for (float value : {1.0002f, -3.7f, 65503.0f, 1e-5f, -7e-6f, 5e-8f, 1e-8f}) {
    auto [low, high] = neighbours(value);
    double chance = (std::abs(value) - std::abs(f16ToF32(low))) /
                    std::abs(double(f16ToF32(high)) - f16ToF32(low));
    std::vector<float> values(kBlock, value);
    std::vector<uint32_t> random(kBlock);
    std::vector<uint16_t> rounded(kBlock), other(kBlock);
    size_t ups = 0;
    for (size_t first = 0; first != kDraws; first += kBlock) {
      bestKernels().randomWords(11, first, random.data(), kBlock);
      bestKernels().narrowF16Stochastic(values.data(), random.data(),
                                        rounded.data(), kBlock);
      kPortable.narrowF16Stochastic(values.data(), random.data(), other.data(),
                                    kBlock);
      ASSERT_EQ(rounded, other);
      for (uint16_t bits : rounded) {
        ASSERT_TRUE(bits == low || bits == high) << value << " " << bits;
        ups += bits == high;
      }
    }
    EXPECT_NEAR(double(ups) / kDraws, chance,
                5 * std::sqrt(chance * (1 - chance) / kDraws) + 1e-6)
        << value;
  }
}

TEST(UpdateKernels, StochasticF16KeepsWhatFitsAndOverflowsAsNearest) {
  std::vector<uint32_t> random(kBlock, 0xffffffffu);
  std::vector<float> values(kBlock);
  std::vector<uint16_t> rounded(kBlock);
  for (uint32_t start = 0; start < 0x10000; start += kBlock) {
    for (size_t i = 0; i != kBlock; ++i)
      values[i] = f16ToF32(uint16_t(start + i));
    bestKernels().narrowF16Stochastic(values.data(), random.data(),
                                      rounded.data(), kBlock);
    for (size_t i = 0; i != kBlock; ++i)
      if (!std::isnan(values[i]))
        ASSERT_EQ(rounded[i], start + i);
  }
  values = {65505.0f, 65519.996f, 65520.0f, -1e9f, kF32NaN, 1e-20f, 1e-45f};
  bestKernels().narrowF16Stochastic(values.data(), random.data(),
                                    rounded.data(), values.size());
  EXPECT_EQ(rounded[0], 0x7bff);
  EXPECT_EQ(rounded[1], 0x7bff);
  EXPECT_EQ(rounded[2], 0x7c00);
  EXPECT_EQ(rounded[3], 0xfc00);
  EXPECT_TRUE(std::isnan(f16ToF32(rounded[4])));
  EXPECT_EQ(rounded[6], 0);
}

TEST(UpdateKernels, AllInstructionSetsGiveTheSameBits) {
  std::vector<float> g = anyFloats(kBlock, 2), start = anyFloats(kBlock, 3);
  AdamFactors adam = {0.125f, 0.01f, 0.999f, 0.9f,  0.1f,
                      0.95f,  0.05f, 1e-3f,  0.31f, 1e-8f};
  SgdFactors sgd = {0.125f, 0.01f, 0.9f, 0.8f, 1e-2f, false, true, true};
  LionFactors lion = {0.125f, 0.999f, 0.9f, 0.1f, 0.99f, 0.01f, 1e-4f};
  auto run = [&](const Kernels &kernels, size_t n) {
    std::vector<float> p = start, m = start, v = start, largest = start;
    std::vector<std::vector<float>> results;
    auto keep = [&] {
      for (const auto *array : {&p, &m, &v, &largest})
        results.push_back(*array);
    };
    kernels.adam(adam, g.data(), p.data(), m.data(), v.data(), largest.data(),
                 n);
    keep();
    kernels.sgd(sgd, g.data(), p.data(), m.data(), n);
    keep();
    kernels.lion(lion, g.data(), p.data(), m.data(), n);
    keep();
    std::vector<uint32_t> bits;
    for (const auto &values : results)
      for (uint32_t each : bitsOfAll(values))
        bits.push_back(each);
    return bits;
  };
  std::vector<float> finite = normals(kBlock, 4);
  auto infs = [&](const Kernels &kernels, size_t n) {
    std::vector<uint16_t> half(n);
    kernels.narrowF16(start.data(), half.data(), n);
    return kernels.countInfF16(half.data(), n);
  };
  EXPECT_GT(infs(kPortable, kBlock), 0u);
  for (const Kernels *kernels : supported())
    for (size_t n : {size_t(1), size_t(31), kBlock}) {
      EXPECT_EQ(run(*kernels, n), run(kPortable, n)) << kernels->name;
      EXPECT_EQ(infs(*kernels, n), infs(kPortable, n)) << kernels->name;
      EXPECT_EQ(bitsOf(kernels->sumOfSquares(finite.data(), n)),
                bitsOf(kPortable.sumOfSquares(finite.data(), n)));
    }
}

} // namespace
