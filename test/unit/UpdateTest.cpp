//===- UpdateTest.cpp - measured gradients and the scaled update ----------===//

#include "runtime/LossScaler.h"
#include "runtime/Numerics.h"
#include "test/unit/UpdateFixtures.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mpopt;
using namespace mpopt::update;

namespace {

/// Parts of odd sizes in an unusual order, as threads may take them.
void scatteredFor(int64_t count, Body body, void *context) {
  for (int64_t end = count; end > 0;) {
    int64_t begin = std::max<int64_t>(0, end - 3);
    body(begin, end, context);
    end = begin;
  }
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

Measured measure(const std::vector<Tensor> &tensors, float inverse = 1.0f,
                 ParallelFor parallelFor = serialFor) {
  return measureGradients(tensors, inverse, bestKernels(), parallelFor);
}

Tensor gradientOnly(std::vector<float> &values) {
  Tensor tensor;
  tensor.size = values.size();
  tensor.gradient = f32(values);
  return tensor;
}

// Case 15.
TEST(Measure, NormNeitherOverflowsNorVanishes) {
  std::vector<float> huge = {2e19f, 2e19f}, tiny(4, 1e-25f);
  Measured measured = measure({gradientOnly(huge)});
  EXPECT_EQ(measured.flags, 0u);
  double norm = std::sqrt(measured.sumOfSquares);
  EXPECT_NEAR(norm, 2.8284271e19, 1e13);
  EXPECT_NEAR(clipFactor(norm, 1.0), 3.5355338e-20, 1e-26);
  EXPECT_NEAR(std::sqrt(measure({gradientOnly(tiny)}).sumOfSquares), 2e-25,
              1e-31);
  std::vector<uint16_t> bf16 = {f32ToBF16(2e19f), f32ToBF16(2e19f)};
  Tensor tensor;
  tensor.size = 2;
  tensor.gradient = arrayOf(bf16, Format::BF16);
  EXPECT_EQ(measure({tensor}).flags, 0u);
  EXPECT_TRUE(std::isfinite(measure({tensor}).sumOfSquares));
}

// Case 14.
TEST(Measure, ClipFactor) {
  EXPECT_EQ(clipFactor(0.5, 1.0), 1.0f);
  EXPECT_EQ(bitsOf(clipFactor(1.0, 1.0)), 0x3f7ffff0u);
  EXPECT_EQ(bitsOf(clipFactor(2.0, 1.0)), 0x3efffff8u);
  EXPECT_EQ(bitsOf(clipFactor(3.0, 1.0)), 0x3eaaaaa7u);
  EXPECT_EQ(clipFactor(0.0, 1.0), 1.0f);
  EXPECT_EQ(clipFactor(1e9, 0.0), 1.0f) << "no limit";
}

TEST(Measure, TellsInfFromNaNAndNamesTheTensor) {
  std::vector<float> clean(70000, 1.0f), bad(70000, 1.0f), later(10, kF32Inf);
  bad[69999] = kF32NaN;
  bad[40000] = -kF32Inf;
  Measured measured =
      measure({gradientOnly(clean), gradientOnly(bad), gradientOnly(later)});
  EXPECT_EQ(measured.flags, uint32_t(SawInf | SawNaN));
  EXPECT_EQ(measured.infs, 11u);
  EXPECT_EQ(measured.nans, 1u);
  EXPECT_EQ(measured.firstBad, 1u);
  measured = measure({gradientOnly(clean)});
  EXPECT_EQ(measured.firstBad, 1u) << "as many as there are tensors";
  EXPECT_EQ(measured.sumOfSquares, 70000.0);
}

// Case 6: finite while scaled, inf when unscaled.
TEST(Measure, OverflowOfTheUnscaledValueCounts) {
  float largest = std::numeric_limits<float>::max();
  std::vector<float> values = {largest, 1.0f};
  EXPECT_EQ(measure({gradientOnly(values)}, 2.0f).flags, uint32_t(SawInf));
  EXPECT_EQ(measure({gradientOnly(values)}, 1.0f).flags, 0u);
  std::vector<float> half = {largest / 2, -largest / 2};
  EXPECT_EQ(measure({gradientOnly(half)}, 2.0f).flags, 0u)
      << "their sum of squares is beyond the bound, they are not";
  std::vector<uint16_t> f16 = {f32ToF16(40000.0f)};
  Tensor tensor;
  tensor.size = 1;
  tensor.gradient = arrayOf(f16, Format::F16);
  EXPECT_EQ(measure({tensor}, 2.0f).flags, 0u);
}

TEST(Measure, DoesNotDependOnThreads) {
  std::vector<float> a = normals(200000, 5), b = normals(33, 6);
  std::vector<Tensor> tensors = {gradientOnly(a), Tensor(), gradientOnly(b)};
  EXPECT_EQ(bitsOf(measure(tensors).sumOfSquares),
            bitsOf(measure(tensors, 1.0f, scatteredFor).sumOfSquares));
}

//===----------------------------------------------------------------------===//
// Updating
//===----------------------------------------------------------------------===//

/// A parameter without a state.
Tensor tensorOf(std::vector<float> &weight, std::vector<float> &gradient) {
  Tensor tensor = gradientOnly(gradient);
  tensor.weight = f32(weight);
  return tensor;
}

/// One parameter with Adam's state.
struct Parameter {
  std::vector<float> weight, gradient, first, second, largest;
  std::vector<uint16_t> copy;

  explicit Parameter(size_t n, uint64_t seed = 0)
      : weight(normals(n, seed)), gradient(normals(n, seed + 1, 0.01f)),
        first(n), second(n), largest(n), copy(n) {}

  Tensor tensor(bool hasLargest = false) {
    Tensor tensor = tensorOf(weight, gradient);
    tensor.first = f32(first);
    tensor.second = f32(second);
    if (hasLargest)
      tensor.largest = f32(largest);
    tensor.copy = arrayOf(copy, Format::BF16);
    return tensor;
  }
};

void apply(const std::vector<Tensor> &tensors, const Hyperparameters &group,
           const Decision &decision = {}, ParallelFor parallelFor = serialFor) {
  applyUpdate(tensors, {group}, decision, bestKernels(), parallelFor);
}

Hyperparameters adamW(double lr = 1e-3, double decay = 0.0) {
  Hyperparameters h;
  h.learningRate = lr;
  h.weightDecay = decay;
  h.isDecayDecoupled = true;
  return h;
}

/// AdamW in double from the same f32 state.
double adamInDouble(double p, double g, double &m, double &v,
                    const Hyperparameters &h, double t) {
  p *= h.isDecayDecoupled ? 1 - h.learningRate * h.weightDecay : 1.0;
  m = h.beta1 * m + (1 - h.beta1) * g;
  v = h.beta2 * v + (1 - h.beta2) * g * g;
  double mean = m / (1 - std::pow(h.beta1, t));
  double square = v / (1 - std::pow(h.beta2, t));
  return p - h.learningRate * mean / (std::sqrt(square) + h.epsilon);
}

TEST(Apply, AdamWIsCloseToDouble) {
  Parameter parameter(1000);
  Hyperparameters h = adamW(1e-2, 0.1);
  std::vector<double> m(1000), v(1000), p;
  for (float value : parameter.weight)
    p.push_back(value);
  for (int t = 1; t <= 10; ++t) {
    Tensor tensor = parameter.tensor();
    tensor.step = t;
    parameter.gradient = normals(1000, 100 + t, 0.01f);
    tensor.gradient = f32(parameter.gradient);
    apply({tensor}, h);
    for (size_t i = 0; i != p.size(); ++i)
      p[i] = adamInDouble(p[i], parameter.gradient[i], m[i], v[i], h, t);
  }
  for (size_t i = 0; i != p.size(); ++i) {
    ASSERT_NEAR(parameter.weight[i], p[i], 2e-6 * (1 + std::abs(p[i])));
    ASSERT_EQ(parameter.copy[i], f32ToBF16(parameter.weight[i]));
  }
}

/// A step of one weight 1.0 with gradient 1.0 and fresh state.
float oneStep(double t, float gradient = 1.0f, double lr = 1e-3) {
  Parameter parameter(1);
  parameter.weight = {1.0f};
  parameter.gradient = {gradient};
  Tensor tensor = parameter.tensor();
  tensor.step = t;
  apply({tensor}, adamW(lr));
  return parameter.weight[0];
}

// Cases 9 and 18: t counts applied updates.
TEST(Apply, BiasCorrectionOfTheFirstUpdate) {
  EXPECT_EQ(bitsOf(oneStep(1)), 0x3f7fbe77u);
  EXPECT_EQ(bitsOf(oneStep(4)), 0x3f7fd9eau);
  EXPECT_EQ(bitsOf(oneStep(2)), 0x3f7fcf3bu);
}

// Case 10: a step with zeros is not a skipped one.
TEST(Apply, SkippedStepLeavesNoTrace) {
  Parameter parameter(40000, 9);
  Tensor tensor = parameter.tensor();
  apply({tensor}, adamW(1e-3, 0.01));
  Parameter before = parameter;
  Decision skipped;
  skipped.isSkipped = true;
  apply({tensor}, adamW(1e-3, 0.01), skipped);
  EXPECT_EQ(parameter.weight, before.weight);
  EXPECT_EQ(parameter.first, before.first);
  EXPECT_EQ(parameter.second, before.second);
  EXPECT_EQ(parameter.copy, before.copy);
  EXPECT_EQ(parameter.gradient, before.gradient);

  parameter.gradient.assign(40000, 0.0f);
  tensor.step = 2;
  apply({tensor}, adamW(1e-3, 0.01));
  EXPECT_NE(parameter.weight, before.weight);
}

// Case 11: by a store, not by a multiplication.
TEST(Apply, SkippedStepClearsGradients) {
  Parameter parameter(3);
  parameter.gradient = {kF32Inf, kF32NaN, 4.0f};
  std::vector<float> weight = parameter.weight;
  Decision decision;
  decision.isSkipped = decision.clearsGradients = true;
  apply({parameter.tensor()}, adamW(), decision);
  for (float value : parameter.gradient)
    EXPECT_EQ(bitsOf(value), 0u);
  EXPECT_EQ(parameter.weight, weight);
}

// Cases 12 and 13: once, with the scale that the loss was multiplied with.
TEST(Apply, GradientIsUnscaledOnce) {
  std::vector<float> weight = {1.0f}, gradient = {1024.0f};
  Tensor tensor = tensorOf(weight, gradient);
  Hyperparameters h;
  h.algorithm = Algorithm::SGD;
  h.learningRate = 0.1;
  Decision decision;
  decision.multiplier = 1.0f / 1024.0f;
  apply({tensor}, h, decision);
  EXPECT_EQ(bitsOf(weight[0]), 0x3f666666u);
}

// Case 23.
TEST(Apply, LionDoesNotMoveWithoutADirection) {
  std::vector<float> weight = {1.5f, 1.5f, 1.5f},
                     gradient = {0.0f, 2.0f, -2.0f}, mean(3);
  Tensor tensor = tensorOf(weight, gradient);
  tensor.first = f32(mean);
  Hyperparameters h;
  h.algorithm = Algorithm::Lion;
  h.learningRate = 0.25;
  h.beta2 = 0.99;
  h.isDecayDecoupled = true;
  apply({tensor}, h);
  EXPECT_EQ(weight, (std::vector<float>{1.5f, 1.25f, 1.75f}));
  EXPECT_FLOAT_EQ(mean[1], 0.02f);
}

TEST(Apply, SgdMomentumAndNesterov) {
  for (bool isNesterov : {false, true}) {
    std::vector<float> weight = {1.0f}, gradient = {0.5f}, buffer = {9.0f};
    Tensor tensor = tensorOf(weight, gradient);
    tensor.first = f32(buffer);
    tensor.isFirst = true;
    Hyperparameters h;
    h.algorithm = Algorithm::SGD;
    h.learningRate = 0.5;
    h.momentum = 0.5;
    h.isNesterov = isNesterov;
    apply({tensor}, h);
    EXPECT_EQ(buffer[0], 0.5f);
    EXPECT_EQ(weight[0], isNesterov ? 1 - 0.5f * 0.75f : 0.75f);
    tensor.isFirst = false;
    apply({tensor}, h);
    EXPECT_EQ(buffer[0], 0.75f);
  }
}

// The format of storage decides the rounding of what is stored, and no more.
TEST(Apply, HalfGradientsAndMomentsAreComputedInF32) {
  constexpr size_t kSize = 3000;
  for (Format format : {Format::F16, Format::BF16}) {
    auto narrow = format == Format::F16 ? f32ToF16 : f32ToBF16;
    auto widen = format == Format::F16 ? f16ToF32 : bf16ToF32;
    Parameter wide(kSize, 20);
    std::vector<uint16_t> gradient, first, second;
    for (size_t i = 0; i != kSize; ++i) {
      gradient.push_back(narrow(wide.gradient[i]));
      first.push_back(narrow(wide.weight[i]));
      second.push_back(narrow(std::abs(wide.weight[i])));
      wide.gradient[i] = widen(gradient[i]);
      wide.first[i] = widen(first[i]);
      wide.second[i] = widen(second[i]);
    }
    Parameter half = wide;
    Tensor tensor = half.tensor();
    tensor.gradient = arrayOf(gradient, format);
    tensor.first = arrayOf(first, format);
    tensor.second = arrayOf(second, format);
    Decision decision;
    decision.clearsGradients = true;
    apply({tensor}, adamW(), decision);
    apply({wide.tensor()}, adamW());
    EXPECT_EQ(half.weight, wide.weight);
    EXPECT_EQ(gradient, std::vector<uint16_t>(kSize, 0));
    for (size_t i = 0; i != kSize; ++i) {
      ASSERT_EQ(first[i], narrow(wide.first[i]));
      ASSERT_EQ(second[i], narrow(wide.second[i]));
    }
  }
}

TEST(Apply, SplitMasterIsAnF32Master) {
  constexpr size_t kSize = 2000;
  Parameter wide(kSize, 30), split = wide;
  std::vector<uint16_t> high(kSize), low(kSize);
  for (size_t begin = 0; begin < kSize; begin += kBlock)
    kPortable.splitBF16(wide.weight.data() + begin, high.data() + begin,
                        low.data() + begin, std::min(kBlock, kSize - begin));
  Tensor tensor = split.tensor();
  tensor.weight = arrayOf(high, Format::BF16);
  tensor.weightLow = low.data();
  for (int step = 1; step <= 5; ++step) {
    Tensor other = wide.tensor();
    tensor.step = other.step = step;
    apply({tensor}, adamW());
    apply({other}, adamW());
  }
  std::vector<float> joined(kSize);
  for (size_t begin = 0; begin < kSize; begin += kBlock)
    kPortable.joinBF16(high.data() + begin, low.data() + begin,
                       joined.data() + begin, std::min(kBlock, kSize - begin));
  EXPECT_EQ(joined, wide.weight);
}

/// Weights of 1 in `format` after a step of 1e-4 that is too small for it.
std::vector<uint16_t> stochasticStep(uint64_t seed, uint32_t number,
                                     double step, Format format = Format::BF16,
                                     ParallelFor parallelFor = serialFor) {
  constexpr size_t kSize = 70000;
  std::vector<float> gradient(kSize, 1.0f), first(kSize), second(kSize);
  std::vector<uint16_t> weight(kSize, format == Format::F16 ? 0x3c00 : 0x3f80);
  Tensor tensor = gradientOnly(gradient);
  tensor.weight = arrayOf(weight, format);
  tensor.first = f32(first);
  tensor.second = f32(second);
  tensor.number = number;
  tensor.step = step;
  Hyperparameters h = adamW(1e-4);
  h.rounding = Rounding::Stochastic;
  h.seed = seed;
  apply({tensor}, h, {}, parallelFor);
  return weight;
}

TEST(Apply, StochasticRoundingDependsOnSeedParameterAndStepOnly) {
  auto start = stochasticStep(0, 0, 1);
  EXPECT_EQ(stochasticStep(0, 0, 1), start);
  EXPECT_EQ(stochasticStep(0, 0, 1, Format::BF16, scatteredFor), start);
  EXPECT_NE(stochasticStep(1, 0, 1), start);
  EXPECT_NE(stochasticStep(0, 1, 1), start);
  EXPECT_NE(stochasticStep(0, 0, 2), start);
}

// B55: the mean of the stored weights is the weight in f32.
TEST(Apply, StochasticRoundingKeepsTheMean) {
  for (Format format : {Format::BF16, Format::F16}) {
    auto widen = format == Format::F16 ? f16ToF32 : bf16ToF32;
    // Below 1, neighbours are that far apart.
    double spacing = format == Format::F16 ? 0x1p-11 : 0x1p-8;
    std::vector<uint16_t> weights = stochasticStep(5, 0, 1, format);
    double sum = 0.0;
    for (uint16_t weight : weights) {
      double value = widen(weight);
      ASSERT_TRUE(value == 1.0 || value == 1.0 - spacing) << value;
      sum += 1.0 - value;
    }
    double chance = 1e-4 / spacing;
    double deviation =
        spacing * std::sqrt(chance * (1 - chance) / double(weights.size()));
    EXPECT_NEAR(sum / double(weights.size()), 1e-4, 5 * deviation);
  }
}

// Case 21: the largest f16 value is 65504; ties go to even, which is inf.
TEST(Apply, CountsFiniteWeightsWhoseCopyOverflows) {
  for (const Kernels *kernels : supported()) {
    std::vector<float> weight(1000, 1.0f), gradient(1000, 0.0f);
    std::vector<uint16_t> copy(1000);
    weight[3] = 65519.99609375f;
    weight[700] = 65520.0f;
    weight[701] = -1e6f;
    weight[702] = kF32Inf;
    weight[703] = kF32NaN;
    Tensor tensor = tensorOf(weight, gradient);
    tensor.copy = arrayOf(copy, Format::F16);
    Hyperparameters h;
    h.algorithm = Algorithm::SGD;
    Applied applied = applyUpdate({tensor}, {h}, {}, *kernels, serialFor);
    EXPECT_EQ(applied.castOverflows, 2u) << kernels->name;
    EXPECT_EQ(copy[3], 0x7bff);
    EXPECT_EQ(copy[700], 0x7c00);
    tensor.copy.format = Format::BF16;
    applied = applyUpdate({tensor}, {h}, {}, *kernels, serialFor);
    EXPECT_EQ(applied.castOverflows, 0u) << "bf16 has the range of f32";
  }
}

// B55: lr * wd = 1e-3 does not move a weight of 1 in bf16.
TEST(Apply, SaysWhichHalfWeightsDoNotMove) {
  std::vector<uint16_t> stuck(70000, 0x3f80), moving(70000, 0x3f80);
  std::vector<float> gradient(70000, 1.0f), none(70000, 0.0f), wide(70000, 1);
  moving[69999] = 0x3a00; // small enough to move
  auto tensorWith = [&](std::vector<uint16_t> &weight, std::vector<float> &g) {
    Tensor tensor = gradientOnly(g);
    tensor.weight = arrayOf(weight, Format::BF16);
    return tensor;
  };
  Hyperparameters h;
  h.algorithm = Algorithm::SGD;
  auto run = [&](const std::vector<Tensor> &tensors) {
    return applyUpdate(tensors, {h}, {}, bestKernels(), scatteredFor);
  };
  Applied applied = run({tensorOf(wide, gradient), tensorWith(moving, gradient),
                         tensorWith(stuck, none), tensorWith(stuck, gradient)});
  EXPECT_EQ(applied.stalled, 1u);
  EXPECT_EQ(applied.firstStalled, 3u);
  h.learningRate = 0.0;
  EXPECT_EQ(run({tensorWith(stuck, gradient)}).stalled, 0u);
}

TEST(Apply, DoesNotDependOnThreads) {
  Parameter a(200000, 50), b(200000, 50);
  apply({a.tensor(true)}, adamW(1e-3, 0.1));
  apply({b.tensor(true)}, adamW(1e-3, 0.1), {}, scatteredFor);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.largest, b.largest);
  EXPECT_EQ(a.largest, a.second) << "after one update";
}

TEST(Apply, MaximizeAscends) {
  Parameter up(100, 60), down(100, 60);
  Hyperparameters h = adamW();
  apply({down.tensor()}, h);
  h.isMaximized = true;
  for (float &value : up.gradient)
    value = -value;
  apply({up.tensor()}, h);
  EXPECT_EQ(up.weight, down.weight);
}

} // namespace
