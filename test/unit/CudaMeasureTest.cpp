//===- CudaMeasureTest.cpp - measured and decided on a GPU ----------------===//
//
// In the emulator, against the code for the CPU: what each chunk is measured
// as, the decision, and the traces of the loss scaler by every rule.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Update/Measure.h"
#include "runtime/CudaUpdate.h"
#include "runtime/Numerics.h"
#include "runtime/Update/Kernels.h"
#include "test/emulator/Emulator.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::mp;
using namespace mpopt::update;
using mpopt::ScalerRule;
using mpopt::ScalerState;

namespace {
class CudaMeasureTest : public ::testing::Test {
protected:
  CudaMeasureTest() {
    DialectRegistry registry;
    cuda::registerCudaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  std::unique_ptr<emulator::Kernel> load(cuda::EmittedKernel emitted) {
    block = {emitted.launch.block[0]};
    EXPECT_TRUE(succeeded(
        cuda::lowerToNVVM(*emitted.module, *cuda::findChip("sm_80"))));
    auto kernel = emulator::Kernel::fromMLIR(emitted.module->getOperation());
    EXPECT_TRUE(!!kernel) << llvm::toString(kernel.takeError());
    return kernel ? std::move(*kernel) : nullptr;
  }

  MLIRContext context;
  emulator::Dim3 block;
};

/// A gradient and what is special in it.
struct Gradient {
  std::vector<char> bytes;
  Tensor tensor;
};
} // namespace

static void put(Gradient &gradient, size_t i, float value) {
  Array &array = gradient.tensor.gradient;
  if (array.format == Format::F32) {
    static_cast<float *>(array.data)[i] = value;
    return;
  }
  static_cast<uint16_t *>(array.data)[i] = array.format == Format::F16
                                               ? mpopt::f32ToF16(value)
                                               : mpopt::f32ToBF16(value);
}

static Gradient makeGradient(Format format, size_t size, size_t offset,
                             float magnitude, std::mt19937 &random) {
  Gradient gradient;
  gradient.bytes.resize(offset + size * (format == Format::F32 ? 4 : 2));
  gradient.tensor.size = size;
  gradient.tensor.gradient = {gradient.bytes.data() + offset, format};
  for (size_t i = 0; i < size; ++i)
    put(gradient, i, magnitude * ((random() >> 8) * 0x1p-23f - 1.0f));
  return gradient;
}

static std::vector<Gradient> makeGradients(Format format) {
  std::mt19937 random(3); // NOLINT(bugprone-random-generator-seed)
  std::vector<Gradient> all;
  size_t unaligned = format == Format::F32 ? 4 : 2;
  for (size_t size : {1, 64, 511, 512, 5000, 32768})
    for (float magnitude : {1.0f, 0.0f, 1e-25f, 2e19f})
      all.push_back(makeGradient(format, size, size % 3 ? unaligned : 0,
                                 magnitude, random));
  all.push_back(makeGradient(format, 1000, 0, 1.0f, random));
  put(all.back(), 77, INFINITY);
  put(all.back(), 999, -INFINITY);
  all.push_back(makeGradient(format, 4096, 0, 1.0f, random));
  put(all.back(), 4000, NAN);
  all.push_back(makeGradient(format, 600, 0, 1.0f, random));
  put(all.back(), 3, std::numeric_limits<float>::max());
  return all;
}

// One chunk for each tensor: then the CPU's result is that of the chunk.
TEST_F(CudaMeasureTest, ChunksHaveTheBitsOfTheCPU) {
  for (Format format : {Format::F32, Format::F16, Format::BF16})
    for (float scale : {1.0f, 0.25f, 65536.0f}) {
      SCOPED_TRACE(testing::Message() << int(format) << " scale " << scale);
      std::vector<Gradient> all = makeGradients(format);
      std::vector<CudaRow> rows;
      std::vector<CudaChunk> chunks;
      std::vector<ScalerState> state(1);
      state[0].scale = scale;
      std::vector<CudaPart> parts(all.size());
      auto kernel = load(cuda::emitMeasure(context, format));
      ASSERT_TRUE(kernel);
      emulator::Launch launch;
      for (Gradient &gradient : all) {
        chunks.push_back({int32_t(rows.size()), 0});
        rows.emplace_back();
        rows.back().gradient = gradient.tensor.gradient.data;
        rows.back().size = int64_t(gradient.tensor.size);
        launch.buffers.push_back(emulator::Argument::input(gradient.bytes));
      }
      launch.grid = {unsigned(chunks.size())};
      launch.block = block;
      launch.args = {
          emulator::Argument::input(rows), emulator::Argument::input(chunks),
          emulator::Argument::input(state), emulator::Argument::output(parts)};
      emulator::Report report = kernel->run(launch);
      EXPECT_TRUE(report.clean()) << report.text();
      for (size_t i = 0; i < all.size(); ++i) {
        Measured measured = measureGradients(
            {all[i].tensor}, state[0].inverse(), kPortable, serialFor);
        SCOPED_TRACE(i);
        if (std::isnan(measured.sumOfSquares))
          EXPECT_TRUE(std::isnan(parts[i].sumOfSquares));
        else
          EXPECT_EQ(parts[i].sumOfSquares, measured.sumOfSquares);
        EXPECT_EQ(parts[i].infs, measured.infs);
        EXPECT_EQ(parts[i].nans, measured.nans);
      }
    }
}

static void run(emulator::Kernel &kernel, emulator::Dim3 block,
                std::vector<emulator::Argument> arguments) {
  emulator::Launch launch;
  launch.block = block;
  launch.args = std::move(arguments);
  emulator::Report report = kernel.run(launch);
  EXPECT_TRUE(report.clean()) << report.text();
}

using emulator::Argument;

TEST_F(CudaMeasureTest, Totals) {
  auto kernel = load(cuda::emitTotal(context));
  ASSERT_TRUE(kernel);
  // More than one part for some threads.
  std::vector<CudaPart> parts(600, {0.75, 0, 1});
  parts[599].infs = 3;
  std::vector<CudaTotals> totals(1);
  run(*kernel, block,
      {Argument::input(parts), Argument::output(totals),
       Argument::scalar(int64_t(parts.size()))});
  EXPECT_EQ(totals[0].sumOfSquares, 450.0);
  EXPECT_EQ(totals[0].infs, 3.0);
  EXPECT_EQ(totals[0].nans, 600.0);
}

TEST_F(CudaMeasureTest, Decision) {
  auto kernel = load(cuda::emitDecide(context));
  ASSERT_TRUE(kernel);
  std::vector<float> scale = {4.0f};
  std::vector<CudaDecision> decision(1);
  auto decide = [&](CudaTotals totals, float found, double limit) {
    std::vector<CudaTotals> measured = {totals};
    std::vector<float> flag = {found};
    run(*kernel, block,
        {Argument::input(measured), Argument::input(scale),
         Argument::input(flag), Argument::output(decision),
         Argument::scalar(limit)});
  };
  for (double limit : {0.0, 1.0, 1e9}) {
    decide({450.0, 0, 0}, 0.0f, limit);
    float clip = clipFactor(std::sqrt(450.0) * 0.25, limit);
    EXPECT_EQ(decision[0].multiplier, 0.25f * clip);
    EXPECT_EQ(decision[0].isSkipped, 0u);
    EXPECT_EQ(decision[0].norm, std::sqrt(450.0));
  }
  decide({NAN, 0, 2}, 0.0f, 1.0);
  EXPECT_EQ(decision[0].isSkipped, 1u);
  for (float found : {1.0f, NAN}) {
    decide({1.0, 0, 0}, found, 1.0);
    EXPECT_EQ(decision[0].isSkipped, 1u);
  }
  EXPECT_EQ(decision[0].applied, 3u);
  EXPECT_EQ(decision[0].skipped, 3u);
}

TEST_F(CudaMeasureTest, FlagsOfSeveralOptimizers) {
  auto kernel = load(cuda::emitNote(context));
  ASSERT_TRUE(kernel);
  std::vector<int32_t> flags = {0};
  auto note = [&](CudaTotals totals, float found) {
    std::vector<CudaTotals> measured = {totals};
    std::vector<float> flag = {found};
    run(*kernel, block,
        {Argument::input(measured), Argument::input(flag),
         Argument::output(flags)});
    return flags[0];
  };
  EXPECT_EQ(note({1.0, 0, 0}, 0.0f), 0);
  EXPECT_EQ(note({NAN, 0, 1}, 0.0f), int32_t(mpopt::SawNaN));
  EXPECT_EQ(note({1.0, 0, 0}, 0.0f), int32_t(mpopt::SawNaN));
  EXPECT_EQ(note({1.0, 0, 0}, 1.0f), int32_t(mpopt::SawNaN | mpopt::SawInf));
}

/// A state without the padding behind it.
static constexpr size_t kBytes = offsetof(ScalerState, nanSteps) + 4;

/// Every rule as it stands, and with figures that reach its limits soon.
static std::vector<ScalerRule> rulesToTry() {
  std::vector<ScalerRule> rules;
  auto [begin, end] = mpopt::scalerRules();
  for (const ScalerRule *rule = begin; rule != end; ++rule) {
    rules.push_back(*rule);
    rules.back().growthInterval = 2;
    rules.push_back(*rule);
    rules.back().growthInterval = 3;
    rules.back().growthFactor = 0x1p40;
    rules.back().backoffFactor = 0.3;
    rules.back().minScale = rule->initScale / 8;
    rules.back().hysteresisSteps = 2;
    rules.back().floorTolerance = 1;
  }
  rules.push_back(rules.back());
  rules.back().atFloor = mpopt::AtFloor::Reset;
  return rules;
}

TEST_F(CudaMeasureTest, TracesOfTheScaler) {
  std::mt19937 random(11); // NOLINT(bugprone-random-generator-seed)
  for (const ScalerRule &rule : rulesToTry()) {
    SCOPED_TRACE(rule.name);
    auto kernel = load(cuda::emitAdvance(context, rule));
    ASSERT_TRUE(kernel);
    ScalerState expected = mpopt::initialState(rule);
    std::vector<ScalerState> state = {expected};
    for (int step = 0; step < 40; ++step) {
      // Clean for a while, then overflows for a while.
      bool isBad = random() % 8 < (step / 10 % 2 ? 6 : 2);
      uint32_t flags = isBad ? 1 + random() % 3 : 0;
      std::vector<uint32_t> pending = {flags};
      run(*kernel, block, {Argument::output(state), Argument::output(pending)});
      mpopt::updateScale(rule, flags, expected);
      ASSERT_EQ(0, std::memcmp(&state[0], &expected, kBytes))
          << "step " << step << ": scale " << state[0].scale << ", not "
          << expected.scale;
      EXPECT_EQ(pending[0], 0u);
    }
  }
}
