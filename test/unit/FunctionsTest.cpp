//===- FunctionsTest.cpp - the error of every function --------------------===//
//
// Each function of codegen/Math/Functions.def, compiled for this machine on
// vectors of 16, on numbers of all exponents, against the f64 functions of the
// C library. Also: the same bits as in a CUDA kernel, and limits.
//
// MPOPT_FUNCTIONS_STRIDE=1 takes all f32 numbers and prints the worst errors.
//
//===----------------------------------------------------------------------===//

#include "codegen/CPU/Jit.h"
#include "codegen/CPU/Lowering.h"
#include "codegen/CUDA/Lowering.h"
#include "codegen/Optimize/Optimize.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "test/emulator/Emulator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {
/// y[i] = f(x[i]) or f(x[i], z[i]) for a block of 16 numbers.
using Code = void (*)(const float *x, const float *z, float *y);

struct Function {
  StringRef name;
  double worst, limit;
  double (*exact)(double, double);
};
} // namespace

static double exactCos(double x, double) { return std::cos(x); }
static double exactErf(double x, double) { return std::erf(x); }
static double exactExp(double x, double) { return std::exp(x); }
static double exactExp2(double x, double) { return std::exp2(x); }
static double exactExpM1(double x, double) { return std::expm1(x); }
static double exactLog(double x, double) { return std::log(x); }
static double exactLog1p(double x, double) { return std::log1p(x); }
static double exactPowF(double x, double y) { return std::pow(x, y); }
static double exactRsqrt(double x, double) { return 1 / std::sqrt(x); }
static double exactSin(double x, double) { return std::sin(x); }
static double exactTanh(double x, double) { return std::tanh(x); }

static std::vector<Function> functions() {
  return {
#define MATH_FUNCTION(OP, NAME, WORST, LIMIT)                                  \
  {::mlir::math::OP::getOperationName(), WORST, LIMIT, nullptr},
#include "codegen/Math/Functions.def"
  };
}

static Function function(StringRef name) {
  static const llvm::StringMap<double (*)(double, double)> exact = {
      {"math.cos", exactCos},     {"math.erf", exactErf},
      {"math.exp", exactExp},     {"math.exp2", exactExp2},
      {"math.expm1", exactExpM1}, {"math.log", exactLog},
      {"math.log1p", exactLog1p}, {"math.powf", exactPowF},
      {"math.rsqrt", exactRsqrt}, {"math.sin", exactSin},
      {"math.tanh", exactTanh},
  };
  for (Function row : functions())
    if (row.name == name) {
      row.exact = exact.lookup(name);
      return row;
    }
  return {name, 0, 0, nullptr};
}

static constexpr unsigned kLanes = 16;

static std::string blockText(StringRef name) {
  std::string operands = name == "math.powf" ? "%a, %b" : "%a";
  return R"(
llvm.func @block(%x: !llvm.ptr, %z: !llvm.ptr, %y: !llvm.ptr) {
  %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
  %b = llvm.load %z {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
  %r = )" +
         name.str() + " " + operands + R"( : vector<16xf32>
  llvm.store %r, %y {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  llvm.return
})";
}

namespace {
class FunctionsTest : public ::testing::Test {
protected:
  FunctionsTest() {
    DialectRegistry registry;
    cuda::registerCudaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// The best that this machine has; the functions need a fused multiplication.
  static std::optional<cpu::CodeTarget> target(const cpu::Jit &jit) {
    std::optional<cpu::CodeTarget> best = jit.findTarget("avx512");
    return best ? best : jit.findTarget("avx2");
  }

  void SetUp() override {
    if (!target(llvm::cantFail(cpu::Jit::get())))
      GTEST_SKIP() << "this machine has neither avx512 nor avx2";
  }

  /// Null with a failure.
  Code compile(StringRef name) {
    cpu::Jit &jit = llvm::cantFail(cpu::Jit::get());
    cpu::CodeTarget chosen = *target(jit);
    auto module = parseSourceString<ModuleOp>(blockText(name), &context);
    if (!module || failed(cpu::lowerToLLVMDialect(*module, chosen.hasF16))) {
      ADD_FAILURE() << name.str();
      return nullptr;
    }
    llvm::LLVMContext llvmContext;
    auto translated = cpu::translate(*module, llvmContext);
    mlir::mp::optimize(*translated, llvm::OptimizationLevel::O2, nullptr, {});
    auto object = llvm::cantFail(jit.compile(*translated, chosen));
    // No symbol: a call of a library would not link.
    auto address = jit.link(std::move(object), "block", {});
    if (!address) {
      ADD_FAILURE() << name.str() << ": "
                    << llvm::toString(address.takeError());
      return nullptr;
    }
    return reinterpret_cast<Code>(*address);
  }

  /// What the emulator gets, for a multiple of 16 numbers.
  std::vector<float> emulate(StringRef name, const std::vector<float> &x,
                             const std::vector<float> &z);

  MLIRContext context;
};
} // namespace

static float fromBits(uint32_t bits) { return llvm::bit_cast<float>(bits); }

/// The distance in units in the last place of f32 at `want`; infinity counts as
/// 2^128.
static double distance(float got, double want) {
  if (std::isnan(got) || std::isnan(want))
    return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  constexpr double most = 0x1p128;
  want = std::fmin(std::fmax(want, -most), most);
  double number = std::isinf(got) ? std::copysign(most, got) : got;
  int exponent = want == 0 ? -149 : std::max(std::ilogb(want) - 23, -149);
  return std::fabs(number - want) / std::ldexp(1.0, std::min(exponent, 104));
}

namespace {
/// Goes through numbers in blocks and keeps the worst error.
struct Worst {
  Function function;
  Code block;
  double distance = 0;
  float x = 0, z = 0, y = 0;

  float xs[kLanes] = {}, zs[kLanes] = {}, ys[kLanes] = {};
  unsigned filled = 0;

  void add(float first, float second = 0) {
    xs[filled] = first;
    zs[filled] = second;
    if (++filled == kLanes)
      flush();
  }
  void flush() {
    for (unsigned i = filled; i < kLanes; ++i)
      xs[i] = zs[i] = 1;
    block(xs, zs, ys);
    for (unsigned i = 0; i != filled; ++i)
      look(i);
    filled = 0;
  }
  void look(unsigned i) {
    double error = ::distance(ys[i], function.exact(xs[i], zs[i]));
    if (error <= distance)
      return;
    distance = error;
    x = xs[i];
    z = zs[i];
    y = ys[i];
  }
};
} // namespace

static uint64_t stride() {
  const char *text = std::getenv("MPOPT_FUNCTIONS_STRIDE");
  return text ? std::strtoull(text, nullptr, 10) : 4099; // prime
}

static void sweep(Worst &worst) {
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += stride()) {
    float x = fromBits(uint32_t(bits));
    // f64 functions are no reference beyond; NaN and infinity stay.
    if (std::isfinite(x) && std::fabs(x) > worst.function.limit)
      continue;
    worst.add(x);
  }
  worst.flush();
}

/// Exponents that keep the power near the range of f32, small integers, halves.
static void sweepPowers(Worst &worst) {
  std::mt19937_64 random(3); // NOLINT(bugprone-random-generator-seed)
  for (uint64_t i = 0, end = 4'000'000'000 / stride(); i != end; ++i) {
    float x = fromBits(uint32_t(random() >> 32));
    double unit = double(random() >> 11) * 0x1p-53 * 2 - 1;
    double log = std::fabs(std::log2(std::fabs(x))) + 1e-3;
    float y = i % 3 == 0   ? float(160 * unit / log)
              : i % 3 == 1 ? std::floor(float(20 * unit))
                           : float(int64_t(4000 * unit)) * 0.01F;
    worst.add(x, y);
  }
  worst.flush();
}

TEST_F(FunctionsTest, ErrorIsWithinTheStatedBound) {
  for (const Function &row : functions()) {
    Worst worst{function(row.name), compile(row.name)};
    ASSERT_TRUE(worst.function.exact && worst.block) << row.name.str();
    if (row.name == "math.powf")
      sweepPowers(worst);
    else
      sweep(worst);
    EXPECT_LT(worst.distance, row.worst) << row.name.str() << " of " << worst.x
                                         << ", " << worst.z << ": " << worst.y;
    if (std::getenv("MPOPT_FUNCTIONS_STRIDE"))
      printf("%-12s %.3f ulp at %a\n", row.name.str().c_str(), worst.distance,
             double(worst.x));
  }
}

/// The function in a CUDA kernel: block i does the i-th 16 numbers.
static std::string kernelText(StringRef name) {
  std::string operands = name == "math.powf" ? "%a, %b" : "%a";
  std::string text = R"(
module attributes {gpu.container_module} {
gpu.module @kernels {
llvm.func @kernel(%x: !llvm.ptr<1>, %z: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
  %c = llvm.mlir.constant(16 : i32) : i32
  %n = nvvm.read.ptx.sreg.ctaid.x : i32
  %i = llvm.mul %n, %c : i32
  %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %pz = llvm.getelementptr %z[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %a = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> vector<16xf32>
  %b = llvm.load %pz {alignment = 4 : i64} : !llvm.ptr<1> -> vector<16xf32>
  %r = )";
  return text + name.str() + " " + operands + R"( : vector<16xf32>
  llvm.store %r, %py {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr<1>
  llvm.return
}}})";
}

std::vector<float> FunctionsTest::emulate(StringRef name,
                                          const std::vector<float> &x,
                                          const std::vector<float> &z) {
  std::vector<float> y(x.size(), NAN);
  auto module = parseSourceString<ModuleOp>(kernelText(name), &context);
  if (!module || failed(cuda::lowerToNVVM(*module, *cuda::findChip("sm_80")))) {
    ADD_FAILURE() << name.str();
    return y;
  }
  auto kernel = emulator::Kernel::fromMLIR(module->getOperation());
  if (!kernel) {
    ADD_FAILURE() << name.str() << ": " << llvm::toString(kernel.takeError());
    return y;
  }
  emulator::Launch launch;
  launch.grid = {unsigned(x.size() / kLanes)};
  launch.block = {1};
  launch.args = {emulator::Argument::input(x), emulator::Argument::input(z),
                 emulator::Argument::output(y)};
  emulator::Report report = (*kernel)->run(launch);
  EXPECT_TRUE(report.clean()) << report.text();
  return y;
}

TEST_F(FunctionsTest, SameBitsInCudaKernels) {
  std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed)
  std::vector<float> x(size_t(256) * kLanes), z(x.size());
  for (size_t i = 0; i != x.size(); ++i) {
    x[i] = i % 2 ? fromBits(random()) : float(int32_t(random())) * 0x1p-27F;
    z[i] = float(int(random() % 41) - 20) * 0.25F;
  }
  for (const Function &row : functions()) {
    if (row.name == "math.rsqrt")
      continue; // an instruction of the GPU
    std::vector<float> got = emulate(row.name, x, z), want(x.size());
    Code block = compile(row.name);
    ASSERT_TRUE(block);
    for (size_t i = 0; i != x.size(); i += kLanes)
      block(x.data() + i, z.data() + i, want.data() + i);
    int wrong = 0;
    for (size_t i = 0; i != x.size(); ++i) {
      bool same = std::isnan(got[i]) ? std::isnan(want[i])
                                     : llvm::bit_cast<uint32_t>(got[i]) ==
                                           llvm::bit_cast<uint32_t>(want[i]);
      if (!same && ++wrong < 4)
        ADD_FAILURE() << row.name.str() << " of " << x[i] << ", " << z[i]
                      << ": " << got[i] << ", not " << want[i];
    }
  }
}

TEST_F(FunctionsTest, LimitsAreThoseOfC) {
  const float special[] = {0,
                           -0.0F,
                           1,
                           -1,
                           INFINITY,
                           -INFINITY,
                           NAN,
                           2,
                           -2,
                           0.5,
                           -0.5,
                           3,
                           -3,
                           0x1p24,
                           1e-40F,
                           -1e-40F,
                           0x1.fffffep127F,
                           -0x1.fffffep127F};
  for (const Function &row : functions()) {
    Function known = function(row.name);
    Code block = compile(row.name);
    ASSERT_TRUE(known.exact && block);
    for (float x : special)
      for (float z : special) {
        if (std::isfinite(x) && std::fabs(x) > row.limit)
          continue;
        float xs[kLanes], zs[kLanes], ys[kLanes];
        std::fill_n(xs, kLanes, x);
        std::fill_n(zs, kLanes, z);
        block(xs, zs, ys);
        double want = known.exact(x, z);
        EXPECT_LT(distance(ys[3], want), row.worst)
            << row.name.str() << " of " << x << ", " << z << ": " << ys[3];
        if (want == 0)
          EXPECT_EQ(std::signbit(ys[3]), std::signbit(want))
              << row.name.str() << " of " << x << ", " << z;
      }
  }
}
