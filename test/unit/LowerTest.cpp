//===- LowerTest.cpp - kernels compute what their regions compute ---------===//
//
// Two witnesses that share no code: the reference interpreter of operators, in
// f64, and the interpreter of kernels, which rounds where a kernel rounds. On
// small integers they agree bit for bit.
//
//===----------------------------------------------------------------------===//

#include "codegen/Kernel/Kernel.h"
#include "codegen/Lower/LowerRegion.h"
#include "codegen/Lower/Passes.h"
#include "codegen/Reference/KernelInterpreter.h"
#include "dialect/IR/Regions.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "passes/Passes.h"
#include "test/unit/FuzzFixture.h"
#include "test/unit/RandomRegion.h"

#include <set>

using namespace mlir;
using namespace mlir::mp;

namespace {
struct Lower : Fuzz {
  Lower() {
    context.loadDialect<MPDialect>();
    loadKernelDialects(context);
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(bool(module)) << text;
    return module;
  }

  /// Outlines all that can be and lowers it.
  OwningOpRef<ModuleOp> lowered(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = clone(module);
    run(*copy, [](OpPassManager &pm) {
      OutlineHotRegionsOptions options;
      options.all = true;
      options.target = "sm_90";
      pm.addPass(createOutlineHotRegions(options));
      pm.addPass(createLowerRegionsToLinalg());
    });
    return copy;
  }

  /// A function that is the body of a region.
  OwningOpRef<func::FuncOp> functionOf(RegionOp region) {
    OpBuilder builder(&context);
    OwningOpRef<func::FuncOp> func =
        func::FuncOp::create(region.getLoc(), "f",
                             builder.getFunctionType(region.getOperandTypes(),
                                                     region.getResultTypes()));
    Block *block = (*func).addEntryBlock();
    builder.setInsertionPointToStart(block);
    IRMapping mapping;
    mapping.map(region.getBody().getArguments(), block->getArguments());
    for (Operation &op : region.getBody().front().without_terminator())
      builder.clone(op, mapping);
    SmallVector<Value> results;
    for (Value value : region.getYielded())
      results.push_back(mapping.lookupOrDefault(value));
    func::ReturnOp::create(builder, region.getLoc(), results);
    return func;
  }

  void compare(RegionOp region, uint64_t seed, bool isExact);
  void testAll(std::string (*make)(uint64_t, bool), bool isExact);
};
} // namespace

/// Integers that make sums exact in any order, and too long for the half types
/// once they are multiplied: a rounding that is missing, or one too many,
/// shows.
static void makeSmall(std::vector<Tensor> &inputs, uint64_t seed) {
  for (Tensor &input : inputs)
    for (auto [i, value] : llvm::enumerate(input.floats))
      value = double((seed * 31 + i * 7 + input.floats.size()) % 31) - 15;
}

/// What a result may be off: some roundings, to the narrowest type of the
/// region, of the largest number in it.
static double boundOf(func::FuncOp func, ArrayRef<Tensor> inputs) {
  OwningOpRef<func::FuncOp> all = func.clone();
  double unit = 0x1p-22, largest = 1;
  SmallVector<Value> values;
  for (Operation &op : (*all).getBody().front().without_terminator())
    for (Value value : op.getResults())
      if (isa<FloatType>(elementTypeOf(value)))
        values.push_back(value);
  Operation *end = (*all).getBody().front().getTerminator();
  end->setOperands(values);
  auto found = evaluate(*all, inputs);
  EXPECT_TRUE(bool(found));
  for (const Tensor &tensor : *found) {
    unit = std::max(unit, tensor.element.isBF16()  ? 0x1p-8
                          : tensor.element.isF16() ? 0x1p-11
                                                   : 0);
    for (double value : tensor.floats)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
  }
  return 8 * unit * largest;
}

/// Equal numbers: which of two zeros is the larger one is the order's choice.
static bool isOff(const Tensor &expected, const Tensor &found, int64_t i,
                  double bound) {
  double a = expected.number(i), b = found.number(i);
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) != std::isnan(b);
  return a != b && !(std::abs(a - b) <= (expected.isFloat() ? bound : 0));
}

/// The element that is off, -1 for none.
static int64_t findDifference(const Tensor &expected, const Tensor &found,
                              double bound) {
  for (int64_t i = 0; i != expected.numElements(); ++i)
    if (isOff(expected, found, i, bound))
      return i;
  return -1;
}

void Lower::compare(RegionOp region, uint64_t seed, bool isExact) {
  ASSERT_TRUE(bool(region.getKernel()));
  FailureOr<OwningOpRef<ModuleOp>> kernel = parseKernelText(region);
  ASSERT_TRUE(succeeded(kernel));
  ASSERT_TRUE(succeeded(verify(**kernel)));
  ASSERT_TRUE(succeeded(parseKernel(**kernel)));
  OwningOpRef<func::FuncOp> func = functionOf(region);
  auto inputs = makeInputs(*func, seed, 3, Draw::Ordinary);
  ASSERT_TRUE(bool(inputs));
  if (isExact)
    makeSmall(*inputs, seed);
  double bound = isExact ? 0 : boundOf(*func, *inputs);
  auto expected = evaluate(*func, *inputs);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  auto found = evaluateKernel(
      (*kernel)->lookupSymbol<func::FuncOp>(kKernelName), *inputs);
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(*expected, *found))) {
    auto &[a, b] = pair;
    ASSERT_EQ(a.element, b.element);
    ASSERT_EQ(a.shape, b.shape);
    int64_t at = findDifference(a, b, bound);
    ASSERT_LT(at, 0) << "result " << i << " at " << at << ": " << b.number(at)
                     << " for " << a.number(at) << "\n"
                     << region.getKernel()->str();
  }
}

void Lower::testAll(std::string (*make)(uint64_t, bool), bool isExact) {
  unsigned numRegions = 0;
  for (uint64_t seed = first; seed != last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OwningOpRef<ModuleOp> module = parse(make(seed, isExact));
    ASSERT_TRUE(bool(module));
    // Gives nodes their numbers, by which records name them.
    run(*module, [](OpPassManager &pm) { pm.addPass(createNormalize()); });
    OwningOpRef<ModuleOp> after = lowered(*module);
    EXPECT_TRUE(accepts(*module, *after)) << errors << textOf(*after);
    EXPECT_TRUE(computeEqually(*module, *after));
    after->walk([&](RegionOp region) {
      ++numRegions;
      compare(region, seed, isExact);
    });
    ASSERT_FALSE(HasFatalFailure()) << textOf(*module);
  }
  // Each graph has a root, though not each root can grow.
  EXPECT_GT(numRegions, (last - first) * 3 / 4);
}

/// What the table of regions promises, codegen/Lower can expand.
TEST(LowerTables, HaveTheSameElementwiseOperators) {
  std::set<std::string> promised, expanded;
  enum {
    Pointwise,
    Constant,
    View,
    Transpose,
    Reduction,
    RowIndexed,
    Rows,
    Matmul
  };
#define MP_REGION_OP(NAME, ROLE)                                               \
  if ((ROLE) == Pointwise)                                                     \
    promised.insert(NAME);
#include "passes/Outline/RegionOps.def"
#define MP_POINTWISE(NAME, EMIT) expanded.insert(NAME);
#include "codegen/Lower/PointwiseOps.def"
  EXPECT_EQ(promised, expanded);
}

TEST_F(Lower, ProductsOfIntegersAreExact) { testAll(randomProduct, true); }
TEST_F(Lower, RowsOfIntegersAreExact) { testAll(randomRows, true); }
TEST_F(Lower, ProductsStayWithinABound) { testAll(randomProduct, false); }
TEST_F(Lower, RowsStayWithinABound) { testAll(randomRows, false); }
