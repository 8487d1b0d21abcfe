//===- CudaFactorsTest.cpp - factors and tables on a GPU ------------------===//
//
// In the emulator: the factors of many steps must have the bits that the host
// computes; texts name the kernels.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Update/Factors.h"
#include "codegen/CUDA/Update/Text.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/Update/Factors.h"
#include "test/emulator/Emulator.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mpopt::update;
using emulator::Argument;

namespace {
class CudaFactorsTest : public ::testing::Test {
protected:
  CudaFactorsTest() {
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
} // namespace

/// The words of factors, whose size is a multiple of four.
static std::array<uint32_t, sizeof(CudaFactors) / 4>
bitsOf(const CudaFactors &factors) {
  return llvm::bit_cast<std::array<uint32_t, sizeof(CudaFactors) / 4>>(factors);
}

static uint64_t optionsOf(const Hyperparameters &h) {
  return (h.isDecayDecoupled ? Decoupled : 0) |
         (h.isMaximized ? Maximized : 0) |
         (h.algorithm == Algorithm::Adam ? IsAdam : 0);
}

static std::vector<Hyperparameters> groupsToTry() {
  std::vector<Hyperparameters> groups(4);
  groups[0].weightDecay = 0.01;
  groups[0].isDecayDecoupled = true;
  groups[1].beta2 = 0.95;
  groups[1].weightDecay = 0.3;
  groups[1].isMaximized = true;
  groups[1].seed = 0x123456789abcdef0;
  groups[2].algorithm = Algorithm::SGD;
  groups[2].beta1 = groups[2].beta2 = 0.0;
  groups[2].momentum = 0.9;
  groups[2].dampening = 0.2;
  groups[3].algorithm = Algorithm::Lion;
  groups[3].beta1 = 0.99999;
  groups[3].learningRate = 3.14159e-4f;
  return groups;
}

TEST_F(CudaFactorsTest, HaveTheBitsOfTheHost) {
  for (bool readsRate : {false, true}) {
    auto kernel = load(cuda::emitFactors(context, readsRate));
    ASSERT_TRUE(kernel);
    for (const Hyperparameters &given : groupsToTry()) {
      Hyperparameters h = given;
      if (readsRate)
        h.learningRate = float(h.learningRate);
      // More tensors than threads of a block; each at another step.
      constexpr int count = 200;
      std::vector<float> steps(count), ages(count);
      std::vector<CudaClock> clocks(count);
      std::vector<CudaFactors> factors(count);
      std::vector<CudaDecision> decision(1);
      std::vector<float> rate = {float(h.learningRate)};
      for (int i = 0; i < count; ++i) {
        steps[i] = float(i < 150 ? i : i * i * 200);
        ages[i] = float(i % 3);
        clocks[i] = {&steps[i], &ages[i], uint32_t(7 * i),
                     uint32_t(count - 1 - i)};
      }
      std::vector<float> before = steps;
      emulator::Launch launch;
      launch.grid = {(count + block.x - 1) / block.x};
      launch.block = block;
      launch.buffers = {Argument::output(steps), Argument::output(ages)};
      launch.args = {Argument::input(clocks), Argument::output(factors),
                     Argument::input(decision), Argument::input(rate),
                     Argument::scalar(int64_t(count))};
      double lr = readsRate ? -1.0 : h.learningRate;
      for (double number : {lr, h.beta1, h.beta2, h.epsilon, h.weightDecay,
                            h.momentum, h.dampening})
        launch.args.push_back(Argument::scalar(number));
      launch.args.push_back(Argument::scalar(optionsOf(h)));
      launch.args.push_back(Argument::scalar(h.seed));
      emulator::Report report = kernel->run(launch);
      EXPECT_TRUE(report.clean()) << report.text();
      for (int i = 0; i < count; ++i) {
        Tensor tensor;
        tensor.step = double(before[i]) + 1.0;
        tensor.isFirst = i % 3 == 0;
        tensor.number = uint32_t(7 * i);
        CudaFactors expected = cudaFactorsOf(tensor, h);
        EXPECT_EQ(bitsOf(expected), bitsOf(factors[count - 1 - i]))
            << "step " << tensor.step;
        EXPECT_EQ(steps[i], before[i] + 1.0f);
        EXPECT_EQ(ages[i], float(i % 3 + 1));
      }
    }
  }
}

TEST_F(CudaFactorsTest, SkippedStepsAreNotCounted) {
  auto kernel = load(cuda::emitFactors(context, false));
  ASSERT_TRUE(kernel);
  std::vector<float> step = {3.0f};
  std::vector<CudaClock> clocks = {{step.data(), step.data(), 0, 0}};
  std::vector<CudaFactors> factors(1);
  std::vector<CudaDecision> decision = {{1.0f, 1}};
  emulator::Launch launch;
  launch.block = block;
  launch.buffers = {Argument::output(step)};
  launch.args = {Argument::input(clocks), Argument::output(factors),
                 Argument::input(decision), Argument::address(nullptr),
                 Argument::scalar(int64_t(1))};
  for (double number : {1e-3, 0.9, 0.999, 1e-8, 0.0, 0.0, 0.0})
    launch.args.push_back(Argument::scalar(number));
  launch.args.push_back(Argument::scalar(uint64_t(IsAdam)));
  launch.args.push_back(Argument::scalar(uint64_t(0)));
  for (uint32_t isSkipped : {1, 0}) {
    decision[0].isSkipped = isSkipped;
    emulator::Report report = kernel->run(launch);
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(step[0], isSkipped ? 3.0f : 4.0f);
  }
}

TEST_F(CudaFactorsTest, PokeWritesOnlyWhatItIsTold) {
  auto kernel = load(cuda::emitPoke(context));
  ASSERT_TRUE(kernel);
  std::vector<int64_t> memory(7, -1);
  emulator::Launch launch;
  launch.block = block;
  launch.args = {Argument::output(memory), Argument::scalar(int64_t(5))};
  for (int64_t i = 0; i < kCudaPokeWords; ++i)
    launch.args.push_back(Argument::scalar(i * i));
  emulator::Report report = kernel->run(launch);
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_EQ(memory, (std::vector<int64_t>{0, 1, 4, 9, 16, -1, -1}));
}

static std::string refusalOf(MLIRContext &context, StringRef text) {
  std::string said;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  EXPECT_TRUE(failed(cuda::emitFromText(context, text))) << text.str();
  return said;
}

TEST_F(CudaFactorsTest, Texts) {
  for (StringRef text :
       {"update adam weight=bf16 split gradient=bf16 first=f32 second=f32 "
        "largest=f32 clear",
        "update sgd weight=f16 gradient=f16 first=f16 nesterov stochastic",
        "update lion weight=f32 gradient=f32 first=bf16 copy=bf16",
        "advance torch init_scale=1024.0 growth_factor=2.0 backoff_factor=0.5 "
        "growth_interval=7 min_scale=0.0 max_scale=0.0 hysteresis=1 "
        "at_floor=hold floor_tolerance=0"})
    EXPECT_TRUE(succeeded(cuda::emitFromText(context, text))) << text.str();
  const std::pair<const char *, const char *> wrong[] = {
      {"", "no kernel of the update is called ''"},
      {"update", "an update needs adam, sgd or lion"},
      {"update adam", "Adam needs a mean and a square"},
      {"update sgd weight=f64", "an update knows no 'weight=f64'"},
      {"update sgd shade=f16", "an update knows no 'shade=f16'"},
      {"measure f64", "measure needs f32, f16 or bf16"},
      {"advance", "advance needs the name of a rule"},
      {"advance torch min_scale=x", "a rule knows no 'min_scale=x'"},
      {"advance torch growth_factor=0.5",
       "the growth factor must be greater than 1"},
      {"decide now", "'now' where nothing is needed"},
  };
  for (auto [text, said] : wrong)
    EXPECT_EQ(refusalOf(context, text), said);
}
