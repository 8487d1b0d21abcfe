//===- KernelTest.cpp - kernels in the form of the backend contract -------===//

#include "codegen/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
class KernelTest : public ::testing::Test {
protected:
  KernelTest() {
    context.disableMultithreading();
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect,
                        tensor::TensorDialect>();
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  }

  FailureOr<Kernel> parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return failure();
    return parseKernel(*module);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string message;
};
} // namespace

/// The gradient of a linear layer's input, then the gradient of a bias before.
static constexpr StringLiteral kMatmul = R"mlir(
func.func @kernel(%x: tensor<?x96xbf16>, %w: tensor<64x96xbf16>,
                  %bias: tensor<64xf32>) -> (tensor<?x64xbf16>, tensor<64xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x96xbf16>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %acc = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x96xbf16>, tensor<64x96xbf16>) outs(%init : tensor<?x64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %wa = arith.extf %a : bf16 to f32
    %wb = arith.extf %b : bf16 to f32
    %p = arith.mulf %wa, %wb : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  %o = tensor.empty(%rows) : tensor<?x64xbf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%acc, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%o : tensor<?x64xbf16>) {
  ^bb0(%a: f32, %b: f32, %c: bf16):
    %s = arith.addf %a, %b : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x64xbf16>
  %se = tensor.empty() : tensor<64xf32>
  %si = linalg.fill ins(%zero : f32) outs(%se : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<?x64xbf16>) outs(%si : tensor<64xf32>) {
  ^bb0(%a: bf16, %c: f32):
    %wa = arith.extf %a : bf16 to f32
    %s = arith.addf %wa, %c : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %he = tensor.empty() : tensor<64xbf16>
  %half = linalg.generic {
      indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>],
      iterator_types = ["parallel"]}
      ins(%sum : tensor<64xf32>) outs(%he : tensor<64xbf16>) {
  ^bb0(%a: f32, %c: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<64xbf16>
  return %y, %half : tensor<?x64xbf16>, tensor<64xbf16>
}
)mlir";

/// Rows divided by their sums, and the sums of columns.
static constexpr StringLiteral kRows = R"mlir(
func.func @kernel(%x: tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xbf16> into tensor<8x8xbf16>
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<8x8xbf16>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: bf16, %c: f32):
    %wa = arith.extf %a : bf16 to f32
    %s = arith.addf %wa, %c : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %o = tensor.empty() : tensor<8x8xbf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%m, %sum : tensor<8x8xbf16>, tensor<8xf32>) outs(%o : tensor<8x8xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: bf16):
    %wa = arith.extf %a : bf16 to f32
    %q = arith.divf %wa, %b : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x8xbf16>
  %columns = linalg.generic {
      indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (c)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<8x8xbf16>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: bf16, %c: f32):
    %wa = arith.extf %a : bf16 to f32
    %s = arith.addf %wa, %c : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %out = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xbf16> into tensor<2x4x8xbf16>
  return %out, %columns : tensor<2x4x8xbf16>, tensor<8xf32>
}
)mlir";

TEST_F(KernelTest, TakesAMatmulApart) {
  FailureOr<Kernel> kernel = parse(kMatmul);
  ASSERT_TRUE(succeeded(kernel)) << message;
  auto *matmul = std::get_if<MatmulKernel>(&*kernel);
  ASSERT_TRUE(matmul);
  EXPECT_EQ(matmul->batch, 1);
  EXPECT_TRUE(ShapedType::isDynamic(matmul->m));
  EXPECT_EQ(matmul->n, 64);
  EXPECT_EQ(matmul->k, 96);
  EXPECT_EQ(matmul->lhs.argument, 0u);
  EXPECT_FALSE(matmul->lhs.transposed);
  EXPECT_EQ(matmul->rhs.argument, 1u);
  EXPECT_TRUE(matmul->rhs.transposed);
  EXPECT_TRUE(matmul->rhs.element.isBF16());
  ASSERT_EQ(matmul->operands.size(), 1u);
  EXPECT_EQ(matmul->operands[0].argument, 2u);
  EXPECT_EQ(matmul->operands[0].access, Access::Column);
  EXPECT_TRUE(matmul->operands[0].element.isF32());
  ASSERT_EQ(matmul->results.size(), 1u);
  EXPECT_EQ(matmul->results[0].result, 0u);
  EXPECT_TRUE(matmul->results[0].element.isBF16());
  EXPECT_FALSE(matmul->accumulatorResult);
  ASSERT_EQ(matmul->sums.size(), 1u);
  EXPECT_EQ(matmul->sums[0].over, SideSum::Over::ResultOverM);
  EXPECT_EQ(matmul->sums[0].result, 1u);
  EXPECT_TRUE(matmul->sums[0].element.isBF16());
}

TEST_F(KernelTest, TakesRowsApart) {
  FailureOr<Kernel> kernel = parse(kRows);
  ASSERT_TRUE(succeeded(kernel)) << message;
  auto *rows = std::get_if<RowKernel>(&*kernel);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->rows, 8);
  EXPECT_EQ(rows->columns, 8);
  ASSERT_EQ(rows->stages.size(), 3u);
  EXPECT_EQ(rows->stages[0].kind, RowStage::Kind::RowReduction);
  EXPECT_TRUE(isa<arith::AddFOp>(rows->stages[0].combiner));
  EXPECT_EQ(rows->stages[1].kind, RowStage::Kind::Pointwise);
  EXPECT_EQ(rows->stages[1].accesses[0], Access::Element);
  EXPECT_EQ(rows->stages[1].accesses[1], Access::Row);
  EXPECT_EQ(rows->stages[2].kind, RowStage::Kind::ColumnReduction);
}

namespace {
/// A change of a good kernel, and the rule that it breaks.
struct Damage {
  StringRef text;
  StringRef from, to;
  StringRef rule;
};
} // namespace

static const Damage kDamages[] = {
    {kMatmul, "func.func @kernel", "func.func @other", "rule K1: "},
    {kMatmul, "%s = arith.addf %a, %b : f32", "%s = arith.remf %a, %b : f32",
     "rule K4: "},
    {kMatmul, "arith.addf %a, %b : f32",
     "arith.addf %a, %b fastmath<fast> : f32", "rule K4: "},
    {kMatmul, "%s = arith.addf %c, %p : f32", "%s = arith.subf %c, %p : f32",
     "rule K7: "},
    {kMatmul, "%zero = arith.constant 0.0 : f32",
     "%zero = arith.constant 1.0 : f32", "rule K7: "},
    {kMatmul, "return %y, %half : tensor<?x64xbf16>, tensor<64xbf16>",
     "return %y, %he : tensor<?x64xbf16>, tensor<64xbf16>", "rule K7: "},
    {kRows, "%zero = arith.constant 0.0 : f32",
     "%zero = arith.constant 1.0 : f32", "rule K8: "},
    {kRows, "return %out, %columns : tensor<2x4x8xbf16>, tensor<8xf32>",
     "return %out, %init : tensor<2x4x8xbf16>, tensor<8xf32>", "rule K8: "},
};

TEST_F(KernelTest, NamesTheRuleThatIsBroken) {
  for (const Damage &damage : kDamages) {
    std::string text = damage.text.str();
    size_t at = text.find(damage.from.str());
    ASSERT_NE(at, std::string::npos) << damage.from.str();
    text.replace(at, damage.from.size(), damage.to.str());
    message.clear();
    EXPECT_TRUE(failed(parse(text))) << damage.to.str();
    EXPECT_EQ(StringRef(message).substr(0, damage.rule.size()), damage.rule)
        << damage.to.str() << ": " << message;
  }
}
