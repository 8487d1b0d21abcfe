//===- CudaUpdateTest.cpp - the update of a GPU against that of the CPU ---===//
//
// Random tensors, formats and options: after the kernel has run in the
// emulator, every array must have the bits that the portable loops give.
//
//===----------------------------------------------------------------------===//

#include "Ptxas.h"
#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Update/Measure.h"
#include "codegen/CUDA/Update/Text.h"
#include "codegen/CUDA/Update/Update.h"
#include "runtime/Numerics.h"
#include "runtime/Update/Factors.h"
#include "test/emulator/Emulator.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::mp;
using namespace mpopt::update;
using Format = mpopt::update::Format;

namespace {
using Bytes = std::vector<char>;

/// One tensor with its own memory; a second one of the same seed is equal.
struct Storage {
  Bytes weight, weightLow, gradient, first, second, largest, copy;
  Tensor tensor;
};

class CudaUpdateTest : public ::testing::Test {
protected:
  CudaUpdateTest() {
    DialectRegistry registry;
    cuda::registerCudaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  void check(const cuda::UpdateKernel &kernel, const Hyperparameters &group,
             const Decision &decision, unsigned seed);

  MLIRContext context;
};
} // namespace

static size_t bytesOf(Format format) { return format == Format::F32 ? 4 : 2; }

static void put(Bytes &bytes, size_t at, Format format, float value) {
  if (format == Format::F32) {
    std::memcpy(bytes.data() + at, &value, 4);
    return;
  }
  uint16_t bits =
      format == Format::F16 ? mpopt::f32ToF16(value) : mpopt::f32ToBF16(value);
  std::memcpy(bytes.data() + at, &bits, 2);
}

/// Numbers of many magnitudes, also zeros; at `offset` bytes.
static Array fill(Bytes &bytes, std::optional<Format> format, size_t size,
                  size_t offset, bool isPositive, std::mt19937 &random) {
  if (!format)
    return {};
  bytes.assign(offset + size * bytesOf(*format), 0);
  for (size_t i = 0; i < size; ++i) {
    float value = std::ldexp((random() >> 8) * 0x1p-24f, -int(random() % 20));
    bool isNegative = !isPositive && random() % 2;
    if (random() % 16)
      put(bytes, offset + i * bytesOf(*format), *format,
          isNegative ? -value : value);
  }
  return {bytes.data() + offset, *format};
}

static Storage makeStorage(const cuda::UpdateKernel &kernel, size_t size,
                           bool isAligned, unsigned number) {
  std::mt19937 random(number);
  Storage s;
  // A half is only 2 bytes away from where the others start.
  auto offset = [&](std::optional<Format> format) {
    return isAligned ? 0 : bytesOf(format.value_or(Format::F32));
  };
  auto array = [&](Bytes &bytes, std::optional<Format> format,
                   bool isPositive = false) {
    return fill(bytes, format, size, offset(format), isPositive, random);
  };
  s.tensor.size = size;
  s.tensor.weight = array(s.weight, kernel.weight);
  if (kernel.isSplit)
    s.tensor.weightLow =
        static_cast<uint16_t *>(array(s.weightLow, Format::F16).data);
  s.tensor.gradient = array(s.gradient, kernel.gradient);
  s.tensor.first = array(s.first, kernel.first);
  s.tensor.second = array(s.second, kernel.second, /*isPositive=*/true);
  s.tensor.largest = array(s.largest, kernel.largest, /*isPositive=*/true);
  s.tensor.copy = array(s.copy, kernel.copy);
  s.tensor.number = number;
  s.tensor.step = 1 + number % 5;
  s.tensor.isFirst = number % 2;
  return s;
}

static std::vector<Storage> makeAll(const cuda::UpdateKernel &kernel,
                                    unsigned seed) {
  std::vector<Storage> all;
  unsigned number = seed;
  for (size_t size : {1, 7, 264, 3001})
    for (bool isAligned : {true, false})
      all.push_back(makeStorage(kernel, size, isAligned, number++));
  all.push_back(makeStorage(kernel, kCudaChunk + 21, true, number));
  return all;
}

static CudaRow rowOf(const Tensor &t) {
  return {t.weight.data, t.weightLow,    t.gradient.data, t.first.data,
          t.second.data, t.largest.data, t.copy.data,     int64_t(t.size)};
}

static std::vector<Bytes *> arraysOf(Storage &s) {
  return {&s.weight, &s.weightLow, &s.gradient, &s.first,
          &s.second, &s.largest,   &s.copy};
}

static void runOnGPU(MLIRContext &context, const cuda::UpdateKernel &kernel,
                     const Hyperparameters &group, const Decision &decision,
                     std::vector<Storage> &all) {
  auto emitted = cuda::emitUpdate(context, kernel);
  ASSERT_TRUE(succeeded(emitted));
  ASSERT_TRUE(
      succeeded(cuda::lowerToNVVM(*emitted->module, *cuda::findChip("sm_80"))));
  auto machine = emulator::Kernel::fromMLIR(emitted->module->getOperation());
  ASSERT_TRUE(!!machine) << llvm::toString(machine.takeError());

  std::vector<CudaRow> rows;
  std::vector<CudaFactors> factors;
  std::vector<CudaChunk> chunks;
  std::vector<CudaDecision> decisions = {
      {decision.multiplier, decision.isSkipped}};
  emulator::Launch launch;
  for (Storage &s : all) {
    for (int32_t i = 0; i * kCudaChunk < int64_t(s.tensor.size); ++i)
      chunks.push_back({int32_t(rows.size()), i});
    rows.push_back(rowOf(s.tensor));
    factors.push_back(cudaFactorsOf(s.tensor, group));
    for (Bytes *bytes : arraysOf(s))
      if (!bytes->empty())
        launch.buffers.push_back(emulator::Argument::output(*bytes));
  }
  launch.grid = {unsigned(chunks.size())};
  launch.block = {emitted->launch.block[0]};
  launch.args = {
      emulator::Argument::input(rows), emulator::Argument::input(factors),
      emulator::Argument::input(chunks), emulator::Argument::input(decisions)};
  emulator::Report report = (*machine)->run(launch);
  EXPECT_TRUE(report.clean()) << report.text();
}

void CudaUpdateTest::check(const cuda::UpdateKernel &kernel,
                           const Hyperparameters &group,
                           const Decision &decision, unsigned seed) {
  std::vector<Storage> cpu = makeAll(kernel, seed), gpu = makeAll(kernel, seed);
  std::vector<Tensor> tensors;
  tensors.reserve(cpu.size());
  for (Storage &s : cpu)
    tensors.push_back(s.tensor);
  applyUpdate(tensors, {group}, decision, kPortable, serialFor);
  runOnGPU(context, kernel, group, decision, gpu);
  static const char *const names[] = {
      "weight", "weightLow", "gradient", "first", "second", "largest", "copy"};
  std::vector<Storage> before = makeAll(kernel, seed);
  for (size_t i = 0; i < cpu.size(); ++i)
    for (size_t array = 0; array < std::size(names); ++array)
      EXPECT_TRUE(*arraysOf(cpu[i])[array] == *arraysOf(gpu[i])[array])
          << names[array] << " of tensor " << i;
  if (!decision.isSkipped)
    EXPECT_NE(before.back().weight, cpu.back().weight);
}

static Hyperparameters groupFor(Algorithm algorithm) {
  Hyperparameters group;
  group.algorithm = algorithm;
  group.learningRate = 0.01;
  group.weightDecay = 0.1;
  group.isDecayDecoupled = true;
  group.seed = 42;
  return group;
}

TEST_F(CudaUpdateTest, AdamWOfEveryMaster) {
  cuda::UpdateKernel kernel;
  kernel.first = kernel.second = Format::F32;
  kernel.copy = Format::BF16;
  kernel.clearsGradients = true;
  Decision decision = {0.25f, false, true};
  for (Format gradient : {Format::F32, Format::F16, Format::BF16}) {
    SCOPED_TRACE(int(gradient));
    kernel.gradient = gradient;
    check(kernel, groupFor(Algorithm::Adam), decision, 1);
  }
  kernel.weight = Format::BF16;
  kernel.isSplit = true;
  kernel.copy = std::nullopt;
  check(kernel, groupFor(Algorithm::Adam), decision, 2);
}

TEST_F(CudaUpdateTest, SkippedStepOnlyClears) {
  cuda::UpdateKernel kernel;
  kernel.first = kernel.second = Format::F32;
  kernel.clearsGradients = true;
  check(kernel, groupFor(Algorithm::Adam), {1.0f, true, true}, 3);
  kernel.clearsGradients = false;
  check(kernel, groupFor(Algorithm::Adam), {1.0f, true, false}, 4);
}

TEST_F(CudaUpdateTest, StochasticRounding) {
  for (Format format : {Format::BF16, Format::F16}) {
    cuda::UpdateKernel kernel;
    kernel.weight = format;
    kernel.gradient = format;
    kernel.first = kernel.second = format;
    kernel.rounding = Rounding::Stochastic;
    Hyperparameters group = groupFor(Algorithm::Adam);
    group.rounding = Rounding::Stochastic;
    SCOPED_TRACE(int(format));
    check(kernel, group, {1.0f, false, false}, 5);
  }
}

static std::optional<Format> anyFormat(std::mt19937 &random, bool canBeNone) {
  unsigned choice = random() % (canBeNone ? 4 : 3);
  if (choice == 3)
    return std::nullopt;
  return Format(choice);
}

// Half the choices of `anyFormat` and the options of each algorithm.
TEST_F(CudaUpdateTest, RandomOptions) {
  std::mt19937 random(9); // NOLINT(bugprone-random-generator-seed)
  for (unsigned i = 0; i < 24; ++i) {
    SCOPED_TRACE(i);
    auto algorithm = Algorithm(random() % 3);
    Hyperparameters group = groupFor(algorithm);
    bool isAdam = algorithm == Algorithm::Adam;
    bool isSGD = algorithm == Algorithm::SGD;
    cuda::UpdateKernel kernel;
    kernel.algorithm = algorithm;
    kernel.weight = *anyFormat(random, false);
    kernel.isSplit = kernel.weight == Format::BF16 && random() % 2;
    kernel.gradient = *anyFormat(random, false);
    kernel.first = anyFormat(random, isSGD);
    if (isAdam) {
      kernel.second = anyFormat(random, false);
      if (random() % 2)
        kernel.largest = Format::F32;
    }
    kernel.copy = anyFormat(random, true);
    kernel.isNesterov = isSGD && kernel.first && random() % 2;
    kernel.clearsGradients = random() % 2;
    group.isNesterov = kernel.isNesterov;
    group.momentum = kernel.first ? 0.9 : 0.0;
    group.dampening = random() % 2 ? 0.0 : 0.1;
    group.beta1 = random() % 2 ? 0.9 : 0.4;
    group.isMaximized = random() % 2;
    group.isDecayDecoupled =
        algorithm == Algorithm::Lion || (isAdam && random() % 2);
    group.weightDecay = random() % 3 ? 0.1 : 0.0;
    if (random() % 2)
      group.rounding = kernel.rounding = Rounding::Stochastic;
    check(kernel, group, {0.5f, false, kernel.clearsGradients}, 20 + i);
  }
}

TEST_F(CudaUpdateTest, SaysWhatIsWrong) {
  cuda::UpdateKernel kernel;
  EXPECT_EQ(cuda::whatIsWrong(kernel), "Adam needs a mean and a square");
  kernel.isSplit = true;
  EXPECT_EQ(cuda::whatIsWrong(kernel),
            "only a weight in bf16 can have its lower half beside it");
  kernel = {};
  kernel.algorithm = Algorithm::Lion;
  EXPECT_EQ(cuda::whatIsWrong(kernel), "Lion needs a mean");
  kernel.first = kernel.second = Format::F32;
  EXPECT_EQ(cuda::whatIsWrong(kernel), "only Adam has squares");
  kernel.second = std::nullopt;
  kernel.isNesterov = true;
  EXPECT_EQ(cuda::whatIsWrong(kernel),
            "Nesterov's rule needs SGD with momentum");
}

static void expectFits(cuda::EmittedKernel emitted, StringRef chip,
                       std::string &ptx) {
  ptx = cuda::compileToPTX(*emitted.module, *cuda::findChip(chip)).value_or("");
  std::optional<test::PtxasReport> report = test::assemble(ptx, chip);
  ASSERT_TRUE(report->isAssembled) << report->text;
  EXPECT_EQ(report->spilledBytes, 0) << report->text;
  EXPECT_LE(report->registers, 128);
}

static unsigned count(StringRef text, StringRef what) {
  return text.count(what);
}

// Roots and quotients are rounded correctly, and each fused multiply-add is one
// that the CPU has.
TEST_F(CudaUpdateTest, Assembled) {
  if (!test::assemble("", "sm_80"))
    GTEST_SKIP() << "no ptxas";
  cuda::UpdateKernel kernel;
  kernel.first = kernel.second = Format::F32;
  kernel.gradient = Format::BF16;
  kernel.copy = Format::BF16;
  kernel.clearsGradients = true;
  for (StringRef chip : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    SCOPED_TRACE(chip.str());
    std::string ptx;
    expectFits(*cuda::emitUpdate(context, kernel), chip, ptx);
    // Eight elements at a time, then one.
    EXPECT_EQ(count(ptx, "sqrt.rn.f32"), 9u);
    EXPECT_EQ(count(ptx, "div.rn.f32"), 18u);
    // Blackwell does two at once.
    EXPECT_EQ(count(ptx, "fma.rn.f32") + count(ptx, "fma.rn.f32x2"), 27u);
    EXPECT_EQ(count(ptx, "sqrt.approx"), 0u);
    EXPECT_EQ(count(ptx, "div.full"), 0u);
    EXPECT_EQ(count(ptx, "st.global.v4.b32") + count(ptx, "st.global.v2.b64"),
              9u);
    expectFits(cuda::emitMeasure(context, Format::BF16), chip, ptx);
    for (StringRef text : {"total", "decide", "note", "factors", "factors rate",
                           "poke", "advance megatron hysteresis=3"})
      expectFits(*cuda::emitFromText(context, text), chip, ptx);
  }
}
