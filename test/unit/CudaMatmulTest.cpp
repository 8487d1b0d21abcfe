//===- CudaMatmulTest.cpp - matmul kernels run by the emulator ------------===//
//
// Types, layouts, tails, epilogues, splits and sums, with integers as data: the
// results must have exactly the bits of exact arithmetic, and no access may be
// a fault.
//
//===----------------------------------------------------------------------===//

#include "CudaMatmulFixture.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir::mp::test;
using llvm::StringRef;

TEST_F(CudaMatmulTest, EveryLayoutAndType) {
  for (StringRef element : {"f16", "bf16"})
    for (bool lhs : {false, true})
      for (bool rhs : {false, true}) {
        SCOPED_TRACE(llvm::formatv("{0} {1} {2}", element, lhs, rhs).str());
        MatmulShape shape{element, 128, 128, 96, 1, lhs, rhs, Tail::Residual};
        check(shape, "128x128x32 w64x64 s4");
        shape.m = 72, shape.n = 88, shape.k = 104;
        check(shape, "64x64x64 w32x32 s3");
      }
}

// Rows of operands that no copy of 16, of 8 or even of 4 bytes divides.
TEST_F(CudaMatmulTest, UnalignedRows) {
  for (int64_t step : {4, 2, 1})
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(llvm::formatv("{0} {1}", step, transposed).str());
      check({"bf16", 64 + step, 64 + step, 64 + step, 1, transposed,
             !transposed, Tail::Cast},
            "64x64x32 w32x32 s2");
    }
}

TEST_F(CudaMatmulTest, DynamicExtents) {
  MatmulShape rows{"f16", 100, 128, 64, 1, false, true, Tail::Residual, 'm'};
  check(rows, "64x64x64 w32x32 s3");
  rows.m = 1;
  check(rows, "16x64x64 w16x16 s4");
  check({"bf16", 64, 136, 70, 1, true, false, Tail::None, 'k'},
        "64x64x32 w32x32 s3");
  check({"f16", 40, 72, 64, 2, false, false, Tail::Cast, 'b'},
        "64x64x64 w32x32 s3");
}

TEST_F(CudaMatmulTest, SplitSums) {
  check({"f16", 128, 128, 512, 1, false, true, Tail::Residual},
        "64x64x64 w32x32 s3 k4");
  check({"bf16", 70, 66, 520, 2, false, true, Tail::Cast},
        "64x64x64 w32x32 s3 k3");
  // More blocks than steps: some have nothing to add.
  check({"bf16", 64, 64, 96, 1, false, true, Tail::Cast},
        "64x64x64 w32x32 s3 k4");
}

TEST_F(CudaMatmulTest, PositionsInTheEpilogue) {
  check({"bf16", 72, 88, 64, 1, false, true, Tail::Mask}, "64x64x32 w32x32 s3");
  check({"f16", 40, 40, 64, 3, false, true, Tail::Mask}, "64x64x32 w32x32 s3");
}

TEST_F(CudaMatmulTest, RandomShapes) {
  const char *schedules[] = {"64x64x32 w32x32 s2", "16x64x64 w16x16 s3",
                             "64x128x32 w32x64 s3", "64x32x32 w32x16 s4 g2",
                             "32x128x64 w32x32 s2 k2"};
  std::mt19937 random(3); // NOLINT(bugprone-random-generator-seed)
  auto upTo = [&](unsigned limit) -> int64_t { return 1 + random() % limit; };
  for (int i = 0; i < 12; ++i) {
    int64_t step = int64_t(1) << random() % 4;
    MatmulShape shape{random() % 2 ? "f16" : "bf16",
                      step * upTo(160 / step),
                      step * upTo(160 / step),
                      step * upTo(200 / step),
                      1,
                      random() % 2 == 0,
                      random() % 2 == 0,
                      random() % 2 ? Tail::Cast : Tail::Residual};
    const char *schedule = schedules[random() % 5];
    SCOPED_TRACE(llvm::formatv("{0} {1}x{2}x{3} {4}{5} {6}", shape.element,
                               shape.m, shape.n, shape.k, shape.lhsTransposed,
                               shape.rhsTransposed, schedule)
                     .str());
    check(shape, schedule);
  }
}

/// dW = dy^T x beside db, the sum of dy over its rows; `?` rows.
static std::string wgradText(int64_t m, int64_t n) {
  return llvm::formatv(
      R"(func.func @kernel(%dy: tensor<?x{0}xbf16>, %x: tensor<?x{1}xbf16>)
    -> (tensor<{0}x{1}xf32>, tensor<{0}xf32>) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{0}x{1}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
  %dw = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%dy, %x : tensor<?x{0}xbf16>, tensor<?x{1}xbf16>) outs(%z : tensor<{0}x{1}xf32>) {{
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %af = arith.extf %a : bf16 to f32
    %bf = arith.extf %b : bf16 to f32
    %p = arith.mulf %af, %bf : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<{0}x{1}xf32>
  %be = tensor.empty() : tensor<{0}xf32>
  %bz = linalg.fill ins(%zero : f32) outs(%be : tensor<{0}xf32>) -> tensor<{0}xf32>
  %db = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%dy : tensor<?x{0}xbf16>) outs(%bz : tensor<{0}xf32>) {{
  ^bb0(%a: bf16, %c: f32):
    %af = arith.extf %a : bf16 to f32
    %s = arith.addf %c, %af : f32
    linalg.yield %s : f32
  } -> tensor<{0}xf32>
  return %dw, %db : tensor<{0}x{1}xf32>, tensor<{0}xf32>
})",
      m, n);
}

TEST_F(CudaMatmulTest, SumsOfTheLeftOperand) {
  int64_t m = 72, n = 136, k = 100;
  for (StringRef schedule :
       {"64x64x32 w32x32 s3", "64x64x32 w32x32 s3 k2 g1"}) {
    ASSERT_TRUE(compile(wgradText(m, n), schedule));
    unsigned seed = 1;
    std::vector<Buffer> arguments{{"bf16", size_t(k * m)},
                                  {"bf16", size_t(k * n)}};
    std::vector<Buffer> results{{"f32", size_t(m * n)}, {"f32", size_t(m)}};
    for (Buffer &argument : arguments)
      argument.fill(seed);
    run(arguments, results, k);
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0, first = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += arguments[0].values[p * m + i];
        first += arguments[0].values[p * m + i] * arguments[1].values[p * n];
      }
      EXPECT_EQ(results[1].values[i], sum) << i;
      EXPECT_EQ(results[0].values[i * n], first) << i;
    }
  }
}
