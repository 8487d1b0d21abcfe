//===- CpuRowsValuesTest.cpp - single values of row kernels on the CPU ----===//
//
// Rounding points, conversions, infinities and NaN, truth values.
//
//===----------------------------------------------------------------------===//

#include "CpuRowsFixture.h"
#include "RowsText.h"
#include "runtime/Numerics.h"
#include <cmath>
#include <random>

using namespace mlir::mp;
using namespace mlir::mp::test;
using llvm::StringRef;

// Arithmetic has one result, whatever the data: a rounding that is missing, or
// one too many, shows. HALF is a type.
static constexpr StringRef kArithmetic = R"(
#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#one = affine_map<(r, c) -> ()>
func.func @kernel(%x: tensor<?x45xHALF>, %s: tensor<?xf32>, %g: tensor<45xf32>, %q: tensor<f32>)
    -> (tensor<?x45xHALF>, tensor<?x45xf32>) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x45xHALF>
  %e1 = tensor.empty(%rows) : tensor<?x45xHALF>
  %e2 = tensor.empty(%rows) : tensor<?x45xf32>
  %y:2 = linalg.generic {indexing_maps = [#e, #row, #col, #one, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %g, %q : tensor<?x45xHALF>, tensor<?xf32>, tensor<45xf32>, tensor<f32>) outs(%e1, %e2 : tensor<?x45xHALF>, tensor<?x45xf32>) {
  ^bb0(%b0: HALF, %b1: f32, %b2: f32, %b3: f32, %o0: HALF, %o1: f32):
    %w = arith.extf %b0 : HALF to f32
    %p = arith.mulf %w, %b1 : f32
    %t = arith.addf %p, %b2 : f32
    %h = arith.truncf %t : f32 to HALF
    %v = arith.extf %h : HALF to f32
    %d = arith.divf %v, %b3 : f32
    %a = math.absf %d : f32
    %n = math.sqrt %a : f32
    %k = arith.subf %n, %p : f32
    %z = arith.truncf %k : f32 to HALF
    linalg.yield %z, %d : HALF, f32
  } -> (tensor<?x45xHALF>, tensor<?x45xf32>)
  return %y#0, %y#1 : tensor<?x45xHALF>, tensor<?x45xf32>
}
)";

TEST_F(CpuRows, RoundsWhereTheKernelSays) {
  for (StringRef half : {"bf16", "f16"})
    for (const std::string &isa : isas()) {
      SCOPED_TRACE(half.str() + " " + isa);
      std::string text = kArithmetic.str();
      replaceAll(text, "HALF", half);
      parse(text);
      options.isa = isa;
      checkExact(makeInputs(6, Data::Real), 6);
    }
}

// FROM and TO are types, CAST is how one becomes the other.
static constexpr StringRef kCast = R"(
#e = affine_map<(r, c) -> (r, c)>
func.func @kernel(%x: tensor<?x256xFROM>) -> tensor<?x256xTO> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x256xFROM>
  %e1 = tensor.empty(%rows) : tensor<?x256xTO>
  %y = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x256xFROM>) outs(%e1 : tensor<?x256xTO>) {
  ^bb0(%b0: FROM, %o0: TO):
    %v = CAST %b0 : FROM to TO
    linalg.yield %v : TO
  } -> tensor<?x256xTO>
  return %y : tensor<?x256xTO>
}
)";

static std::string castText(StringRef from, StringRef to) {
  std::string text = kCast.str();
  replaceAll(text, "FROM", from);
  replaceAll(text, "TO", to);
  replaceAll(text, "CAST", to == "f32" ? "arith.extf" : "arith.truncf");
  return text;
}

TEST_F(CpuRows, EveryHalfIsWidened) {
  for (StringRef half : {"bf16", "f16"})
    for (const std::string &isa : isas()) {
      SCOPED_TRACE(half.str() + " " + isa);
      parse(castText(half, "f32"));
      options.isa = isa;
      Tensors inputs = makeInputs(256, Data::Real);
      for (int i = 0; i != 1 << 16; ++i)
        inputs[0].floats[size_t(i)] = half == "f16"
                                          ? mpopt::f16ToF64(uint16_t(i))
                                          : mpopt::bf16ToF64(uint16_t(i));
      checkExact(inputs, 256);
    }
}

// All halves, what is halfway between two of them, and the floats beside that;
// then any floats at all.
TEST_F(CpuRows, EveryHalfIsRoundedTo) {
  std::mt19937 random(3); // NOLINT(bugprone-random-generator-seed)
  for (StringRef half : {"bf16", "f16"}) {
    parse(castText("f32", half));
    Tensors inputs = makeInputs(1024, Data::Real);
    for (size_t i = 0; i != inputs[0].floats.size(); ++i) {
      auto bits = uint16_t(i / 4);
      uint32_t between = half == "f16" ? 1U << 12 : 1U << 15;
      float value =
          half == "f16" ? mpopt::f16ToF32(bits) : mpopt::bf16ToF32(bits);
      uint32_t other[] = {0, between - 1, between, between + 1};
      uint32_t all = mpopt::bitsOf(value) + other[i % 4];
      if (i % 7 == 6)
        all = uint32_t(random());
      inputs[0].floats[i] = mpopt::f32ToF64(mpopt::floatOf(all));
    }
    for (const std::string &isa : isas()) {
      SCOPED_TRACE(half.str() + " " + isa);
      options.isa = isa;
      checkExact(inputs, 1024);
    }
  }
}

TEST_F(CpuRows, MaskedElementsHaveNoShare) {
  parse("softmax", "bf16", 70);
  Tensors inputs = makeInputs(3, Data::Real);
  for (size_t i = 0; i != inputs[0].floats.size(); ++i)
    if (i % 3 == 0)
      inputs[0].floats[i] = -INFINITY;
  Tensors results = run(inputs, 3);
  checkBound(inputs, results, 3);
  EXPECT_EQ(results[0].floats[0], 0);
}

TEST_F(CpuRows, NaNStaysInItsRow) {
  for (StringRef family : {"softmax", "layer-norm"}) {
    parse(family, "f16", 40);
    Tensors inputs = makeInputs(3, Data::Real);
    Tensors before = run(inputs, 3);
    inputs[0].floats[57] = NAN;
    Tensors after = run(inputs, 3);
    const Tensor &result = after[family == "softmax" ? 0 : 1];
    const Tensor &clean = before[family == "softmax" ? 0 : 1];
    for (size_t i = 0; i != result.floats.size(); ++i) {
      if (i / 40 == 1)
        EXPECT_TRUE(std::isnan(result.floats[i])) << family.str() << i;
      else
        EXPECT_EQ(result.floats[i], clean.floats[i]) << family.str() << i;
    }
  }
}

// Truth values as an argument, a result, and a reduction; the position in the
// matrix; integers.
static constexpr StringRef kTruth = R"(
#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#t = affine_map<(c, r) -> (r, c)>
#tcol = affine_map<(c, r) -> (c)>
func.func @kernel(%x: tensor<?x37xf32>, %m: tensor<?x37xi1>)
    -> (tensor<?x37xi1>, tensor<?xi1>, tensor<37xi64>, tensor<?x37xi32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %false = arith.constant false
  %zero = arith.constant 0 : i64
  %rows = tensor.dim %x, %c0 : tensor<?x37xf32>
  %e1 = tensor.empty(%rows) : tensor<?x37xi1>
  %e2 = tensor.empty(%rows) : tensor<?x37xi32>
  %b, %p = linalg.generic {indexing_maps = [#e, #e, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<?x37xf32>, tensor<?x37xi1>) outs(%e1, %e2 : tensor<?x37xi1>, tensor<?x37xi32>) {
  ^bb0(%b0: f32, %b1: i1, %o0: i1, %o1: i32):
    %c = arith.cmpf ogt, %b0, %one : f32
    %a = arith.andi %c, %b1 : i1
    %r = linalg.index 0 : index
    %k = linalg.index 1 : index
    %ri = arith.index_cast %r : index to i32
    %ki = arith.index_cast %k : index to i32
    %s = arith.muli %ri, %ki : i32
    linalg.yield %a, %s : i1, i32
  } -> (tensor<?x37xi1>, tensor<?x37xi32>)
  %e3 = tensor.empty(%rows) : tensor<?xi1>
  %e4 = linalg.fill ins(%false : i1) outs(%e3 : tensor<?xi1>) -> tensor<?xi1>
  %any = linalg.generic {indexing_maps = [#e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : tensor<?x37xi1>) outs(%e4 : tensor<?xi1>) {
  ^bb0(%b0: i1, %o0: i1):
    %o = arith.ori %o0, %b0 : i1
    linalg.yield %o : i1
  } -> tensor<?xi1>
  %e5 = tensor.empty() : tensor<37xi64>
  %e6 = linalg.fill ins(%zero : i64) outs(%e5 : tensor<37xi64>) -> tensor<37xi64>
  %n = linalg.generic {indexing_maps = [#t, #tcol], iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<?x37xi1>) outs(%e6 : tensor<37xi64>) {
  ^bb0(%b0: i1, %o0: i64):
    %w = arith.extui %b0 : i1 to i64
    %o = arith.addi %o0, %w : i64
    linalg.yield %o : i64
  } -> tensor<37xi64>
  return %b, %any, %n, %p : tensor<?x37xi1>, tensor<?xi1>, tensor<37xi64>, tensor<?x37xi32>
}
)";

TEST_F(CpuRows, TruthValuesAndIntegers) {
  parse(kTruth.str());
  for (const std::string &isa : isas()) {
    SCOPED_TRACE(isa);
    options.isa = isa;
    Tensors inputs = makeInputs(45, Data::Real);
    for (size_t i = 0; i != inputs[1].ints.size(); ++i)
      inputs[1].ints[i] = i % 5 < 2;
    // A row without any.
    std::fill_n(inputs[1].ints.begin() + 37, 37, 0);
    checkExact(inputs, 45);
  }
}
