//===- CodegenCpuTest.cpp - compiled kernels against f64 ------------------===//

#include "codegen/CPU/Compile.h"
#include "runtime/Numerics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

using namespace llvm;
using namespace mlir::mp::cpu;
using ::mp::runtime::CpuKernel;

namespace {
/// A tensor of a kernel: f32 or a half.
struct Tensor {
  std::string type;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  Tensor(StringRef type, std::vector<int64_t> shape)
      : type(type), shape(std::move(shape)) {
    bytes.resize(size_t(count()) * (isWide() ? 4 : 2));
  }
  bool isWide() const { return type == "f32"; }
  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
  double get(int64_t i) const {
    if (isWide())
      return double(reinterpret_cast<const float *>(bytes.data())[i]);
    uint16_t bits = reinterpret_cast<const uint16_t *>(bytes.data())[i];
    return type == "bf16" ? mpopt::bf16ToF64(bits) : mpopt::f16ToF64(bits);
  }
  void set(int64_t i, float value) {
    if (isWide()) {
      reinterpret_cast<float *>(bytes.data())[i] = value;
      return;
    }
    reinterpret_cast<uint16_t *>(bytes.data())[i] =
        type == "bf16" ? mpopt::f32ToBF16(value) : mpopt::f32ToF16(value);
  }
  void fill(std::mt19937 &random, bool whole) {
    std::uniform_int_distribution<int> integers(-3, 3);
    std::normal_distribution<float> reals;
    for (int64_t i = 0; i != count(); ++i)
      set(i, whole ? float(integers(random)) : reals(random));
  }
};

/// A linear layer's kernel: y = epilogue(x w^T), with a bias and a residual.
struct Linear {
  std::string half = "bf16";
  int64_t m = 37, n = 70, k = 50;
  bool dynamic = true;
  std::string body = R"(
    %s = arith.addf %acc, %b : f32
    %h = arith.truncf %s : f32 to HALF
    %e = arith.extf %h : HALF to f32
    %wr = arith.extf %r : HALF to f32
    %o = arith.addf %e, %wr : f32
    %y = arith.truncf %o : f32 to HALF
    linalg.yield %y, %s : HALF, f32)";

  std::string text() const {
    std::string text = R"(
module {
  func.func @kernel(%x: tensor<DxKxHALF>, %w: tensor<NxKxHALF>, %bias: tensor<Nxf32>, %res: tensor<DxNxHALF>) -> (tensor<DxNxHALF>, tensor<DxNxf32>, tensor<Nxf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %d = tensor.dim %x, %c0 : tensor<DxKxHALF>
    %e0 = tensor.empty(DIM) : tensor<DxNxf32>
    %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<DxNxf32>) -> tensor<DxNxf32>
    %a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<DxKxHALF>, tensor<NxKxHALF>) outs(%i0 : tensor<DxNxf32>) {
    ^bb0(%p: HALF, %q: HALF, %c: f32):
      %wp = arith.extf %p : HALF to f32
      %wq = arith.extf %q : HALF to f32
      %t = arith.mulf %wp, %wq : f32
      %s = arith.addf %c, %t : f32
      linalg.yield %s : f32
    } -> tensor<DxNxf32>
    %e1 = tensor.empty(DIM) : tensor<DxNxHALF>
    %out:2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%a, %bias, %res : tensor<DxNxf32>, tensor<Nxf32>, tensor<DxNxHALF>) outs(%e1, %e0 : tensor<DxNxHALF>, tensor<DxNxf32>) {
    ^bb0(%acc: f32, %b: f32, %r: HALF, %u: HALF, %v: f32):BODY
    } -> (tensor<DxNxHALF>, tensor<DxNxf32>)
    %e2 = tensor.empty() : tensor<Nxf32>
    %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<Nxf32>) -> tensor<Nxf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>], iterator_types = ["parallel", "reduction"]}
        ins(%out#0 : tensor<DxNxHALF>) outs(%i2 : tensor<Nxf32>) {
    ^bb0(%p: HALF, %c: f32):
      %wp = arith.extf %p : HALF to f32
      %s = arith.addf %wp, %c : f32
      linalg.yield %s : f32
    } -> tensor<Nxf32>
    return %out#0, %out#1, %sum : tensor<DxNxHALF>, tensor<DxNxf32>, tensor<Nxf32>
  }
}
)";
    auto replace = [&](StringRef from, const std::string &to) {
      for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos;
           at += to.size())
        text.replace(at, from.size(), to);
    };
    replace("BODY", body);
    replace("HALF", half);
    replace("DIM", dynamic ? "%d" : "");
    replace("<Dx", "<" + (dynamic ? "?" : std::to_string(m)) + "x");
    replace("<Nx", "<" + std::to_string(n) + "x");
    replace("xKx", "x" + std::to_string(k) + "x");
    replace("xNx", "x" + std::to_string(n) + "x");
    return text;
  }
};

struct CodegenCpu : testing::Test {
  std::vector<Tensor> tensors;
  CpuOptions options;

  const CpuKernel *compile(const std::string &text) {
    Expected<const CpuKernel *> kernel = compileCpuKernel(text, options);
    EXPECT_TRUE(bool(kernel)) << toString(kernel.takeError());
    return kernel ? *kernel : nullptr;
  }

  void call(const CpuKernel &kernel, int64_t rows, int32_t threads = 1) {
    std::vector<void *> buffers;
    buffers.reserve(tensors.size());
    for (Tensor &tensor : tensors)
      buffers.push_back(tensor.bytes.data());
    int64_t bytes = kernel.scratchBytes(&rows, threads);
    std::unique_ptr<void, void (*)(void *)> scratch(
        std::aligned_alloc(64, size_t(bytes + 127) / 64 * 64), std::free);
    for (int32_t phase = 0; phase != kernel.phases; ++phase)
      kernel.run(phase, 0, kernel.tasks(phase, &rows, threads), buffers.data(),
                 &rows, scratch.get(), threads);
  }

  /// Runs a linear layer on random numbers.
  void run(const Linear &linear, bool whole, uint32_t seed) {
    std::mt19937 random(seed);
    const std::string &half = linear.half;
    tensors.clear();
    tensors.emplace_back(half, std::vector{linear.m, linear.k});
    tensors.emplace_back(half, std::vector{linear.n, linear.k});
    tensors.emplace_back("f32", std::vector{linear.n});
    tensors.emplace_back(half, std::vector{linear.m, linear.n});
    for (Tensor &tensor : tensors)
      tensor.fill(random, whole);
    tensors.emplace_back(half, std::vector{linear.m, linear.n});
    tensors.emplace_back("f32", std::vector{linear.m, linear.n});
    tensors.emplace_back("f32", std::vector{linear.n});
    if (const CpuKernel *kernel = compile(linear.text()))
      call(*kernel, linear.m);
  }

  /// The f64 sum of products behind element (m, n).
  double product(const Linear &linear, int64_t m, int64_t n) const {
    double sum = 0;
    for (int64_t k = 0; k != linear.k; ++k)
      sum +=
          tensors[0].get(m * linear.k + k) * tensors[1].get(n * linear.k + k);
    return sum;
  }
};
} // namespace

static double rounded(StringRef half, double value) {
  return half == "bf16" ? mpopt::bf16ToF64(mpopt::f64ToBF16(value))
                        : mpopt::f16ToF64(mpopt::f64ToF16(value));
}

// Whole numbers: each rounding point is where the kernel says, to the bit.
TEST_F(CodegenCpu, RoundsWhereTheKernelSays) {
  for (const char *half : {"bf16", "f16"})
    for (bool dynamic : {true, false}) {
      Linear linear;
      linear.half = half;
      linear.dynamic = dynamic;
      run(linear, /*whole=*/true, 5);
      std::vector<double> sums(size_t(linear.n), 0);
      for (int64_t m = 0; m != linear.m; ++m)
        for (int64_t n = 0; n != linear.n; ++n) {
          int64_t at = m * linear.n + n;
          double wide = product(linear, m, n) + tensors[2].get(n);
          double sum = rounded(half, wide) + tensors[3].get(at);
          ASSERT_EQ(tensors[5].get(at), wide) << half << m << ' ' << n;
          ASSERT_EQ(tensors[4].get(at), rounded(half, sum));
          sums[size_t(n)] += tensors[4].get(at);
        }
      for (int64_t n = 0; n != linear.n; ++n)
        EXPECT_EQ(tensors[6].get(n), sums[size_t(n)]);
    }
}

/// A function of the contract and its error in units of the last place.
namespace {
struct Function {
  const char *name;
  double (*exact)(double);
  float from, to;
  double bound;
};
} // namespace

// The errors that codegen/docs/Functions.md states.
TEST_F(CodegenCpu, FunctionsErrAsStated) {
  static const Function functions[] = {
      {"exp", std::exp, -87, 88, 2},      {"tanh", std::tanh, -9, 9, 8},
      {"erf", std::erf, -4, 4, 32},       {"log", std::log, 1e-30F, 1e30F, 4},
      {"log1p", std::log1p, -0.9F, 9, 4}, {"expm1", std::expm1, -9, 9, 4},
      {"sqrt", std::sqrt, 0, 1e6F, 0.5},
  };
  for (const Function &function : functions) {
    Linear linear;
    linear.k = 32;
    linear.body = formatv(R"(
    %f = math.{0} %b : f32
    %y = arith.truncf %f : f32 to bf16
    linalg.yield %y, %f : bf16, f32)",
                          function.name);
    linear.n = 4000;
    linear.m = 1;
    run(linear, true, 1);
    std::mt19937 random(2); // NOLINT(bugprone-random-generator-seed)
    std::uniform_real_distribution<float> uniform(function.from, function.to);
    for (int64_t i = 0; i != linear.n; ++i)
      tensors[2].set(i, uniform(random));
    const CpuKernel *kernel = compile(linear.text());
    ASSERT_TRUE(kernel);
    call(*kernel, 1);
    double worst = 0;
    for (int64_t i = 0; i != linear.n; ++i) {
      double exact = function.exact(tensors[2].get(i));
      double unit = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
      worst = std::max(worst, std::abs(tensors[5].get(i) - exact) / unit);
    }
    EXPECT_LE(worst, function.bound) << function.name;
    RecordProperty(function.name, std::to_string(worst));
  }
}

TEST_F(CodegenCpu, OneTextIsCompiledOnce) {
  Linear linear;
  linear.n = 71;
  CpuCounters before = cpuCounters();
  const CpuKernel *first = compile(linear.text());
  EXPECT_EQ(compile(linear.text()), first);
  EXPECT_EQ(cpuCounters().compiled, before.compiled + 1);
}

TEST_F(CodegenCpu, ObjectsAreKeptAndDamagedOnesAreNot) {
  SmallString<128> directory;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("mpopt-objects", directory));
  options.cacheDirectory = std::string(directory);
  Linear linear;
  linear.n = 72;
  CpuCounters before = cpuCounters();
  ASSERT_TRUE(compile(linear.text()));
  EXPECT_EQ(cpuCounters().compiled, before.compiled + 1);
  // Another option: another kernel of this process, of the same object.
  options.isa = "portable";
  ASSERT_TRUE(compile(linear.text()));
  EXPECT_EQ(cpuCounters().loaded, before.loaded + 1);
  std::error_code error;
  for (sys::fs::directory_iterator file(directory, error), end; file != end;
       file.increment(error)) {
    auto contents = MemoryBuffer::getFile(file->path());
    ASSERT_TRUE(bool(contents));
    std::string damaged = (*contents)->getBuffer().str();
    damaged[damaged.size() / 2] ^= 1;
    raw_fd_ostream(file->path(), error) << damaged;
  }
  options.isa = "avx2";
  ASSERT_TRUE(compile(linear.text()));
  EXPECT_EQ(cpuCounters().compiled, before.compiled + 2);
  EXPECT_FALSE(sys::fs::remove_directories(directory));
}

TEST_F(CodegenCpu, ErrorsNameTheRule) {
  auto fails = [&](const std::string &text) {
    Expected<const CpuKernel *> kernel = compileCpuKernel(text, options);
    EXPECT_FALSE(bool(kernel));
    return toString(kernel.takeError());
  };
  EXPECT_NE(fails("module {").find("cannot read a kernel"), std::string::npos);
  EXPECT_NE(fails("module {}").find("rule K1"), std::string::npos);
  options.isa = "mmx";
  EXPECT_EQ(fails(Linear().text()), "this machine has no 'mmx'");
}
