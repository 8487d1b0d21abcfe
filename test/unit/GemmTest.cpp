//===- GemmTest.cpp - matrix products against f64 -------------------------===//

#include "runtime/Gemm/Gemm.h"
#include "runtime/Numerics.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace mp::runtime;
using namespace mp::runtime::gemm;

namespace {
struct Case {
  Element element;
  int64_t batch, m, n, k;
  bool lhsTransposed, rhsTransposed, rhsBatched;
};

/// A product whose results are its sums.
struct GemmTest : testing::TestWithParam<const char *> {
  Product product;
  Case shape{};
  std::vector<double> lhs, rhs; ///< what the buffers hold
  std::vector<char> lhsBytes, rhsBytes;
  std::vector<float> result;

  static void finish(const gemm::Block *block, void *const *buffers,
                     const int64_t *sizes) {
    for (int64_t i = 0; i != block->rows; ++i)
      std::copy_n(block->sums + i * kBlock, block->columns,
                  static_cast<float *>(buffers[2]) +
                      (block->batch * sizes[0] + block->row + i) * sizes[1] +
                      block->column);
  }

  /// Whole numbers, so that sums are exact, or any.
  void fill(bool isExact, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> whole(-4, 4);
    std::normal_distribution<float> normal;
    auto make = [&](int64_t count, std::vector<double> &values,
                    std::vector<char> &bytes) {
      values.resize(size_t(count));
      bytes.resize(size_t(count * sizeOf(shape.element)));
      for (int64_t i = 0; i != count; ++i) {
        float value = isExact ? float(whole(random)) : normal(random);
        values[size_t(i)] = store(value, bytes.data(), i);
      }
    };
    make(shape.batch * shape.m * shape.k, lhs, lhsBytes);
    make((shape.rhsBatched ? shape.batch : 1) * shape.n * shape.k, rhs,
         rhsBytes);
  }

  /// Returns the value that is stored.
  double store(float value, char *to, int64_t i) const {
    if (shape.element == Element::F32) {
      reinterpret_cast<float *>(to)[i] = value;
      return double(value);
    }
    bool isBF16 = shape.element == Element::BF16;
    uint16_t bits = isBF16 ? mpopt::f32ToBF16(value) : mpopt::f32ToF16(value);
    reinterpret_cast<uint16_t *>(to)[i] = bits;
    return isBF16 ? mpopt::bf16ToF64(bits) : mpopt::f16ToF64(bits);
  }

  void run(const Case &given, const char *isa, bool isExact, int32_t threads,
           uint32_t seed) {
    shape = given;
    product = {};
    product.batch.factor = shape.batch;
    product.m.factor = shape.m;
    product.n.factor = shape.n;
    product.k.factor = shape.k;
    product.element = shape.element;
    product.lhs = {0, shape.lhsTransposed, true};
    product.rhs = {1, shape.rhsTransposed, shape.rhsBatched};
    product.finish = finish;
    product.isa = isa;
    fill(isExact, seed);
    result.assign(size_t(shape.batch * shape.m * shape.n), NAN);
    void *buffers[] = {lhsBytes.data(), rhsBytes.data(), result.data()};
    int64_t sizes[] = {shape.m, shape.n};
    int64_t bytes = scratchBytes(product, sizes, threads);
    std::unique_ptr<void, void (*)(void *)> scratch(
        std::aligned_alloc(64, size_t(bytes + 63) / 64 * 64 + 64), std::free);
    for (int32_t phase = 0; phase != phases(product); ++phase)
      runPhase(phase, buffers, sizes, scratch.get(), threads);
  }

  void runPhase(int32_t phase, void *const *buffers, const int64_t *sizes,
                void *scratch, int32_t threads) const {
    int64_t count = tasks(product, phase, sizes, threads);
    std::vector<std::thread> pool;
    for (int32_t t = 0; t != threads; ++t)
      pool.emplace_back([&, t] {
        gemm::run(product, phase, count * t / threads,
                  count * (t + 1) / threads, buffers, sizes, scratch, threads);
      });
    for (std::thread &thread : pool)
      thread.join();
  }

  double at(bool isLhs, int64_t b, int64_t i, int64_t k) const {
    bool transposed = isLhs ? shape.lhsTransposed : shape.rhsTransposed;
    int64_t own = isLhs ? shape.m : shape.n;
    bool ownIsRow = isLhs != transposed;
    int64_t matrix = isLhs || shape.rhsBatched ? b : 0;
    int64_t index =
        matrix * own * shape.k + (ownIsRow ? i * shape.k + k : k * own + i);
    return (isLhs ? lhs : rhs)[size_t(index)];
  }

  /// Largest error, as a share of the sum of absolute products.
  double error() const {
    double worst = 0;
    for (int64_t b = 0; b != shape.batch; ++b)
      for (int64_t m = 0; m != shape.m; ++m)
        for (int64_t n = 0; n != shape.n; ++n) {
          double sum = 0, absolute = 0;
          for (int64_t k = 0; k != shape.k; ++k) {
            double term = at(true, b, m, k) * at(false, b, n, k);
            sum += term;
            absolute += std::abs(term);
          }
          float got = result[size_t((b * shape.m + m) * shape.n + n)];
          double off = std::abs(double(got) - sum);
          worst = std::max(worst, off == 0 ? 0 : off / absolute);
          if (std::isnan(got))
            return INFINITY;
        }
    return worst;
  }
};
} // namespace

static const Element kElements[] = {Element::F32, Element::BF16, Element::F16};

static std::string nameOf(const Case &c) {
  static const char *const names[] = {"f32", "bf16", "f16"};
  return std::string(names[int(c.element)]) + " " + std::to_string(c.batch) +
         "x" + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + (c.lhsTransposed ? " T" : " N") +
         (c.rhsTransposed ? "T" : "N");
}

// Where order cannot matter, every bit is that of the exact sum.
TEST_P(GemmTest, WholeNumbersAreExact) {
  if (!chooseIsa(Element::BF16, GetParam()))
    GTEST_SKIP() << "this machine has no " << GetParam();
  static const int64_t shapes[][3] = {{1, 1, 1},    {32, 32, 32},  {33, 31, 65},
                                      {7, 100, 32}, {64, 96, 200}, {3, 5, 0},
                                      {70, 40, 33}};
  for (Element element : kElements) {
    if (!chooseIsa(element, GetParam()))
      continue;
    for (auto [m, n, k] : shapes)
      for (int layout = 0; layout != 8; ++layout) {
        Case shape{
            element,          layout & 4 ? 3 : 1, m, n, k, bool(layout & 1),
            bool(layout & 2), bool(layout & 4)};
        run(shape, GetParam(), /*isExact=*/true, 1 + layout % 3, 7);
        EXPECT_EQ(error(), 0) << nameOf(shape);
      }
  }
}

// Sums of f32 in any order err by k * 2^-24 of the sum of magnitudes at most.
TEST_P(GemmTest, RandomNumbersAreWithinTheBound) {
  if (!chooseIsa(Element::BF16, GetParam()))
    GTEST_SKIP() << "this machine has no " << GetParam();
  std::mt19937 random(3); // NOLINT(bugprone-random-generator-seed)
  auto upTo = [&](int64_t most) { return int64_t(random() % uint64_t(most)); };
  for (int i = 0; i != 40; ++i) {
    Element element = kElements[i % 3];
    if (!chooseIsa(element, GetParam()))
      continue;
    Case shape{element,       1 + upTo(2),   1 + upTo(90),  1 + upTo(90),
               1 + upTo(700), bool(upTo(2)), bool(upTo(2)), bool(upTo(2))};
    run(shape, GetParam(), /*isExact=*/false, 1 + i % 2, uint32_t(i));
    EXPECT_LE(error(), double(shape.k) * 0x1p-24) << nameOf(shape);
  }
}

// Neither threads nor tasks decide the order of a sum.
TEST_P(GemmTest, ThreadsChangeNoBit) {
  if (!chooseIsa(Element::BF16, GetParam()))
    GTEST_SKIP() << "this machine has no " << GetParam();
  for (Element element : kElements) {
    if (!chooseIsa(element, GetParam()))
      continue;
    Case shape{element, 1, 150, 170, 1000, true, true, false};
    run(shape, GetParam(), false, 1, 1);
    std::vector<float> one = result;
    run(shape, GetParam(), false, 3, 1);
    EXPECT_EQ(one, result);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, GemmTest,
                         testing::Values("amx", "avx512_bf16", "avx512", "avx2",
                                         "portable"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
