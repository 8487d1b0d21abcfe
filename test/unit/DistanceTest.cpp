//===- DistanceTest.cpp - distances, and graphs without roundings ---------===//

#include "codegen/Reference/Distance.h"
#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "dialect/IR/MPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Distance : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};

  Tensor tensor(std::vector<double> values) {
    Tensor result(Float64Type::get(&context), {int64_t(values.size())});
    result.floats = std::move(values);
    return result;
  }
  double between(std::vector<double> exact, std::vector<double> other) {
    return relativeDistance(tensor(std::move(exact)), tensor(std::move(other)));
  }
};

TEST_F(Distance, IsRelativeToTheLargest) {
  EXPECT_EQ(between({1, -4}, {1, -4}), 0);
  EXPECT_EQ(between({1, -4}, {2, -4}), 0.25);
  EXPECT_EQ(between({2, -4}, {1, -4}), 0.25);
  EXPECT_EQ(between({0, 0}, {0, -0.0}), 0);
  EXPECT_EQ(between({0, 0}, {0, 1e-30}), kInf);
  EXPECT_EQ(between({}, {}), 0);
}

TEST_F(Distance, OfWhatIsNotFiniteIsNoneOrInfinite) {
  EXPECT_EQ(between({kInf, kNaN, 2}, {kInf, kNaN, 1}), 0.5);
  EXPECT_EQ(between({kInf}, {-kInf}), kInf);
  EXPECT_EQ(between({1}, {kInf}), kInf);
  EXPECT_EQ(between({kNaN}, {1}), kInf);
  EXPECT_EQ(between({1}, {kNaN}), kInf);
}

TEST_F(Distance, OfOtherShapesOrNumbersOfResultsIsInfinite) {
  EXPECT_EQ(between({1}, {1, 1}), kInf);
  EXPECT_EQ(relativeDistance(ArrayRef(tensor({1})), ArrayRef<Tensor>()), kInf);
}

// Every rounding of the graph is gone; what counts stays whole.
TEST_F(Distance, WithoutRoundingsComputesInF64) {
  context.loadDialect<MPDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
func.func @f(%x: tensor<1x3xf32>, %n: tensor<1xi64>) -> (tensor<1x1xbf16>, tensor<1x3xf32>, tensor<1xi64>, tensor<1x3xi64>) {
  %0 = mp.cast %x origin(user) : tensor<1x3xf32> to tensor<1x3xbf16>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<1x3xbf16>) -> tensor<3x1xbf16>
  %2 = mp.matmul %0, %1 : (tensor<1x3xbf16>, tensor<3x1xbf16>) -> tensor<1x1xbf16>
  %3 = mp.round %x to f16 origin(user) : tensor<1x3xf32>
  %4 = mp.cast %x origin(user) : tensor<1x3xf32> to tensor<1x3xi64>
  return %2, %3, %n, %4 : tensor<1x1xbf16>, tensor<1x3xf32>, tensor<1xi64>, tensor<1x3xi64>
})",
                                            &context);
  ASSERT_TRUE(module);
  auto func = *module->getOps<func::FuncOp>().begin();
  for (uint64_t seed = 0; seed != 20; ++seed) {
    auto inputs = makeInputs(func, seed, 3, Draw::Ordinary);
    ASSERT_TRUE(bool(inputs));
    const std::vector<double> &x = (*inputs)[0].floats;
    for (double value : x) // as Ordinary promises, and f32
      EXPECT_TRUE(std::abs(value) <= 4 && double(float(value)) == value);
    OwningOpRef<func::FuncOp> exact = withoutRoundings(func);
    auto results = evaluate(*exact, widened(*inputs));
    ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
    // Products of f32 are exact; a sum of three in any order is off by 2 ulp.
    double sum = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    EXPECT_NEAR((*results)[0].floats[0], sum, sum * 0x1p-51);
    EXPECT_EQ((*results)[1].floats, x);
    EXPECT_EQ((*results)[2].ints, (*inputs)[1].ints);
    EXPECT_EQ((*results)[3].ints[0], int64_t(x[0]));
  }
  // The graph itself is as it was.
  EXPECT_TRUE(cast<RankedTensorType>(func.getResultTypes()[0])
                  .getElementType()
                  .isBF16());
}

} // namespace
