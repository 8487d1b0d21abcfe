//===- ReferenceTest.cpp - the interpreter against known values -----------===//

#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "dialect/IR/MPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

namespace {
struct Reference : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string error;

  /// Runs `text`, whose arguments carry their values as `mp.value`.
  std::vector<Tensor> run(StringRef text) {
    context.loadDialect<MPDialect, func::FuncDialect>();
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    if (!module)
      return {};
    auto func = *module->getOps<func::FuncOp>().begin();
    auto inputs = makeInputs(func, 0);
    EXPECT_TRUE(bool(inputs));
    auto results = evaluate(func, *inputs);
    if (results)
      return std::move(*results);
    error = llvm::toString(results.takeError());
    return {};
  }
  /// The first result as numbers.
  std::vector<double> numbers(StringRef text) {
    std::vector<Tensor> results = run(text);
    EXPECT_FALSE(results.empty()) << error;
    std::vector<double> values;
    if (!results.empty())
      for (int64_t i = 0, end = results[0].numElements(); i != end; ++i)
        values.push_back(results[0].number(i));
    return values;
  }
};
using Numbers = std::vector<double>;
} // namespace

// Case B14: a narrowing and widening is a rounding.
TEST_F(Reference, NarrowingThenWideningRounds) {
  StringRef casts = R"(
func.func @f(%x: tensor<4xf32> {mp.value = dense<[0.14285715, 0.2857143, 0.42857143, 0.5714286]> : tensor<4xf32>}) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(user) : tensor<4xf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
})";
  StringRef round = R"(
func.func @f(%x: tensor<4xf32> {mp.value = dense<[0.14285715, 0.2857143, 0.42857143, 0.5714286]> : tensor<4xf32>}) -> tensor<4xf32> {
  %0 = mp.round %x to f16 origin(user) : tensor<4xf32>
  return %0 : tensor<4xf32>
})";
  Numbers expected = {0.142822265625, 0.28564453125, 0.428466796875,
                      0.5712890625};
  EXPECT_EQ(numbers(casts), expected);
  EXPECT_EQ(numbers(round), expected);
}

// Case B15: the rounding lies between the product and the bias.
TEST_F(Reference, BiasIsAddedAfterTheRounding) {
  EXPECT_EQ(numbers(R"(
func.func @f(%x: tensor<1xf32> {mp.value = dense<1.2345678> : tensor<1xf32>},
             %b: tensor<1xf32> {mp.value = dense<0.001> : tensor<1xf32>}) -> tensor<1xf32> {
  %0 = mp.cast %x origin(user) : tensor<1xf32> to tensor<1xbf16>
  %1 = mp.cast %0 origin(promotion) : tensor<1xbf16> to tensor<1xf32>
  %2 = mp.aten "aten.add.Tensor"(%1, %b) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %2 : tensor<1xf32>
})"),
            (Numbers{double(1.234375f + 0.001f)}));
}

// Case B17.
TEST_F(Reference, F16OverflowsAndUnderflows) {
  EXPECT_EQ(numbers(R"(
func.func @f(%x: tensor<2xf32> {mp.value = dense<[1.0e-12, 1.234567e5]> : tensor<2xf32>}) -> tensor<2xf32> {
  %0 = mp.round %x to f16 origin(user) : tensor<2xf32>
  return %0 : tensor<2xf32>
})"),
            (Numbers{0, HUGE_VAL}));
}

TEST_F(Reference, Movement) {
  StringRef head = R"(
func.func @f(%x: tensor<2x3xf32> {mp.value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>},
             %i: tensor<2xi64> {mp.value = dense<[1, 0]> : tensor<2xi64>}) -> )";
  struct Case {
    const char *name, *type, *op;
    Numbers expected;
  } cases[] = {
      {"permute",
       "tensor<3x2xf32>",
       R"("aten.permute.default"(%x) {args = {dims = [1, 0]}} : (tensor<2x3xf32>) -> )",
       {1, 4, 2, 5, 3, 6}},
      {"t",
       "tensor<3x2xf32>",
       R"("aten.t.default"(%x) : (tensor<2x3xf32>) -> )",
       {1, 4, 2, 5, 3, 6}},
      {"view",
       "tensor<3x2xf32>",
       R"("aten.view.default"(%x) {args = {size = [-1, 2]}} : (tensor<2x3xf32>) -> )",
       {1, 2, 3, 4, 5, 6}},
      {"slice",
       "tensor<2x2xf32>",
       R"("aten.slice.Tensor"(%x) {args = {dim = 1, start = 0, end = 9223372036854775807, step = 2}} : (tensor<2x3xf32>) -> )",
       {1, 3, 4, 6}},
      {"select",
       "tensor<2xf32>",
       R"("aten.select.int"(%x) {args = {dim = 1, index = -1}} : (tensor<2x3xf32>) -> )",
       {3, 6}},
      {"flip",
       "tensor<2x3xf32>",
       R"("aten.flip.default"(%x) {args = {dims = [1]}} : (tensor<2x3xf32>) -> )",
       {3, 2, 1, 6, 5, 4}},
      {"cat",
       "tensor<2x6xf32>",
       R"("aten.cat.default"(%x, %x) {args = {tensors = ["%0", "%1"], dim = 1}} : (tensor<2x3xf32>, tensor<2x3xf32>) -> )",
       {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
      {"pad",
       "tensor<2x4xf32>",
       R"("aten.constant_pad_nd.default"(%x) {args = {pad = [2, -1], value = 7.0}} : (tensor<2x3xf32>) -> )",
       {7, 7, 1, 2, 7, 7, 4, 5}},
      {"index_select",
       "tensor<2x3xf32>",
       R"("aten.index_select.default"(%x, %i) {args = {dim = 0}} : (tensor<2x3xf32>, tensor<2xi64>) -> )",
       {4, 5, 6, 1, 2, 3}},
      {"embedding",
       "tensor<2x3xf32>",
       R"("aten.embedding.default"(%x, %i) : (tensor<2x3xf32>, tensor<2xi64>) -> )",
       {4, 5, 6, 1, 2, 3}},
      {"amax",
       "tensor<2xf32>",
       R"("aten.amax.default"(%x) {args = {dim = [-1]}} : (tensor<2x3xf32>) -> )",
       {3, 6}},
      {"sum",
       "tensor<1x3xf32>",
       R"("aten.sum.dim_IntList"(%x) {args = {dim = [0], keepdim = true}} : (tensor<2x3xf32>) -> )",
       {5, 7, 9}},
      {"mean",
       "tensor<f32>",
       R"("aten.mean.default"(%x) : (tensor<2x3xf32>) -> )",
       {3.5}},
      {"argmax",
       "tensor<2xi64>",
       R"("aten.argmax.default"(%x) {args = {dim = 1}} : (tensor<2x3xf32>) -> )",
       {2, 2}},
      {"sub alpha",
       "tensor<2x3xf32>",
       R"("aten.sub.Tensor"(%x, %x) {args = {alpha = 2}} : (tensor<2x3xf32>, tensor<2x3xf32>) -> )",
       {-1, -2, -3, -4, -5, -6}},
      {"gt",
       "tensor<2x3xi1>",
       R"("aten.gt.Scalar"(%x) {args = {other = 2.5}} : (tensor<2x3xf32>) -> )",
       {0, 0, 1, 1, 1, 1}},
  };
  for (const Case &c : cases) {
    std::string text = (head + c.type + " {\n  %0 = mp.aten " + c.op + c.type +
                        "\n  return %0 : " + c.type + "\n}")
                           .str();
    EXPECT_EQ(numbers(text), c.expected) << c.name;
  }
}

TEST_F(Reference, MatmulWithBiasRoundsOnce) {
  // 256 + 1 is a tie in bf16 and would go to 256, and 256 + 1 again; the sum of
  // all three rounds to 258.
  EXPECT_EQ(numbers(R"(
func.func @f(%a: tensor<1x2xbf16> {mp.value = dense<[[256.0, 1.0]]> : tensor<1x2xbf16>},
             %b: tensor<2x1xbf16> {mp.value = dense<1.0> : tensor<2x1xbf16>},
             %c: tensor<1xbf16> {mp.value = dense<1.0> : tensor<1xbf16>}) -> tensor<1x1xbf16> {
  %0 = mp.matmul %a, %b bias(%c : tensor<1xbf16>) : (tensor<1x2xbf16>, tensor<2x1xbf16>) -> tensor<1x1xbf16>
  return %0 : tensor<1x1xbf16>
})"),
            (Numbers{258})); // 257 alone is a tie and goes to 256
}

TEST_F(Reference, LayerNormAndSoftmax) {
  Numbers norm = numbers(R"(
func.func @f(%x: tensor<1x2xf64> {mp.value = dense<[[1.0, 3.0]]> : tensor<1x2xf64>}) -> tensor<1x2xf64> {
  %y, %m, %r = mp.layer_norm(%x) {args = {eps = 0.0, normalized_shape = [2]}} : (tensor<1x2xf64>) -> (tensor<1x2xf64>, tensor<1x1xf64>, tensor<1x1xf64>)
  return %y : tensor<1x2xf64>
})");
  EXPECT_EQ(norm, (Numbers{-1, 1}));
  Numbers softmax = numbers(R"(
func.func @f(%x: tensor<2xf64> {mp.value = dense<[0.0, 1000.0]> : tensor<2xf64>}) -> tensor<2xf64> {
  %y = mp.softmax(%x) {args = {dim = 0, half_to_float = false}} : (tensor<2xf64>) -> tensor<2xf64>
  return %y : tensor<2xf64>
})");
  EXPECT_EQ(softmax, (Numbers{0, 1}));
}

// As PyTorch's scalar code does: a sign that a rounding gives shows.
TEST_F(Reference, MaximumTakesTheFirstZero) {
  Numbers values = numbers(R"(
func.func @f(%x: tensor<2xf32> {mp.value = dense<[-0.0, 0.0]> : tensor<2xf32>},
             %y: tensor<2xf32> {mp.value = dense<[0.0, -0.0]> : tensor<2xf32>}) -> tensor<2xf32> {
  %0 = mp.aten "aten.maximum.default"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})");
  EXPECT_TRUE(std::signbit(values[0]));
  EXPECT_FALSE(std::signbit(values[1]));
}

TEST_F(Reference, UnsupportedOperatorIsNamed) {
  run(R"(
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = mp.aten "aten.lgamma.default"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})");
  EXPECT_NE(error.find("aten.lgamma.default has no evaluator"),
            std::string::npos)
      << error;
}

TEST_F(Reference, WrongResultTypeIsNamed) {
  run(R"(
func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> {
  %0 = mp.aten "aten.relu.default"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
})");
  EXPECT_NE(error.find("aten.relu.default computed 2xf32"), std::string::npos)
      << error;
}

TEST_F(Reference, WrongArgumentsFail) {
  run(R"(
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = mp.aten "aten.flip.default"(%x) {args = {dims = [3]}} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})");
  EXPECT_NE(error.find("dimension 3 is outside of rank 1"), std::string::npos)
      << error;
}

// The body rounds where its operations do: neither sum is a bf16.
TEST_F(Reference, ScaledUpdateRunsItsBody) {
  std::vector<Tensor> results = run(R"(
func.func @f(%g: tensor<2xf32> {mp.value = dense<[4.0, 12.0]> : tensor<2xf32>},
             %s: tensor<f32> {mp.value = dense<0.25> : tensor<f32>},
             %w: tensor<2xf32> {mp.value = dense<1.0> : tensor<2xf32>}) -> (tensor<2xf32>, tensor<2xbf16>) {
  %0:2 = mp.scaled_update(%g, %s, %w) : (tensor<2xf32>, tensor<f32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xbf16>) {
  ^bb0(%a: tensor<2xf32>, %b: tensor<f32>, %c: tensor<2xf32>):
    %1 = mp.aten "aten.mul.Tensor"(%a, %b) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %2 = mp.aten "aten.add.Tensor"(%c, %1) {args = {alpha = 0.001953125 : f64}} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %3 = mp.cast %2 origin(user) : tensor<2xf32> to tensor<2xbf16>
    mp.yield %2, %3 : tensor<2xf32>, tensor<2xbf16>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xbf16>
})");
  ASSERT_EQ(results.size(), 2u) << error;
  EXPECT_EQ(results[0].floats, (Numbers{1 + 0x1p-9, 1 + 3 * 0x1p-9}));
  EXPECT_EQ(results[1].floats, (Numbers{1, 1 + 0x1p-7}));
}

// PyTorch multiplies in f32 and rounds to the gradient's type; one value that
// is not finite sets the flag for all.
TEST_F(Reference, CheckAndUnscale) {
  std::vector<Tensor> results = run(R"(
func.func @f(%g: tensor<2xf16> {mp.value = dense<[1.0, 0x7C00]> : tensor<2xf16>},
             %h: tensor<1xf16> {mp.value = dense<3.0> : tensor<1xf16>},
             %found: tensor<f32> {mp.value = dense<0.0> : tensor<f32>},
             %inverse: tensor<f32> {mp.value = dense<0.333333343> : tensor<f32>}) -> (tensor<2xf16>, tensor<1xf16>, tensor<f32>) {
  %0:3 = mp.aten "aten._amp_foreach_non_finite_check_and_unscale.default"(%g, %h, %found, %inverse)
      {args = {self = ["%0", "%1"], found_inf = "%2", inv_scale = "%3"}}
      : (tensor<2xf16>, tensor<1xf16>, tensor<f32>, tensor<f32>) -> (tensor<2xf16>, tensor<1xf16>, tensor<f32>)
  return %0#0, %0#1, %0#2 : tensor<2xf16>, tensor<1xf16>, tensor<f32>
})");
  ASSERT_EQ(results.size(), 3u) << error;
  EXPECT_EQ(results[0].floats, (Numbers{0.333251953125, INFINITY}));
  EXPECT_EQ(results[1].floats, Numbers{1});
  EXPECT_EQ(results[2].floats, Numbers{1});
}

TEST_F(Reference, ListOperatorsRunTheirLoop) {
  std::vector<Tensor> results = run(R"(
func.func @f(%x: tensor<2xf32> {mp.value = dense<[1.0, -2.0]> : tensor<2xf32>},
             %y: tensor<1xf32> {mp.value = dense<4.0> : tensor<1xf32>}) -> (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) {
  %0:2 = mp.aten "aten._foreach_addcdiv.ScalarList"(%x, %y, %x, %y, %x, %y)
      {args = {self = ["%0", "%1"], tensor1 = ["%2", "%3"], tensor2 = ["%4", "%5"], scalars = [0.5 : f64, 2.0 : f64]}}
      : (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) -> (tensor<2xf32>, tensor<1xf32>)
  %1 = mp.aten "aten._foreach_maximum.Scalar"(%x) {args = {self = ["%0"], scalar = 0.25 : f64}} : (tensor<2xf32>) -> tensor<2xf32>
  return %0#0, %0#1, %1 : tensor<2xf32>, tensor<1xf32>, tensor<2xf32>
})");
  ASSERT_EQ(results.size(), 3u) << error;
  EXPECT_EQ(results[0].floats, (Numbers{1.5, -1.5}));
  EXPECT_EQ(results[1].floats, Numbers{6});
  EXPECT_EQ(results[2].floats, (Numbers{1, 0.25}));
}

// As torch.lerp: from the nearer end, so that a weight of 1 gives the end.
TEST_F(Reference, OperatorsOfOptimizers) {
  std::vector<Tensor> results = run(R"(
func.func @f(%x: tensor<3xf64> {mp.value = dense<[1.0e30, 3.0, -1.0]> : tensor<3xf64>},
             %y: tensor<3xf64> {mp.value = dense<[1.0, 5.0, 0.5]> : tensor<3xf64>}) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>) {
  %0 = mp.aten "aten.lerp.Scalar"(%x, %y) {args = {weight = 1.0 : f64}} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %1 = mp.aten "aten.addcmul.default"(%y, %y, %y) {args = {value = 2 : i64}} : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %2 = mp.aten "aten.clamp_max.default"(%x) {args = {max = 2.0 : f64}} : (tensor<3xf64>) -> tensor<3xf64>
  %3 = mp.aten "aten.linalg_vector_norm.default"(%y) : (tensor<3xf64>) -> tensor<f64>
  return %0, %1, %2, %3 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>
})");
  ASSERT_EQ(results.size(), 4u) << error;
  EXPECT_EQ(results[0].floats, (Numbers{1, 5, 0.5}));
  EXPECT_EQ(results[1].floats, (Numbers{3, 55, 1}));
  EXPECT_EQ(results[2].floats, (Numbers{2, 2, -1}));
  EXPECT_EQ(results[3].floats, Numbers{std::sqrt(26.25)});
}
