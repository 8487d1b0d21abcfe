//===- CpuRegionsTest.cpp - regions of random graphs on the CPU -----------===//
//
// From operators to machine code: the compiled kernel gives the interpreter's
// numbers, on integers whose sums are exact and whose products are too long for
// the half types. MPOPT_FUZZ_GRAPHS sets the number of graphs.
//
//===----------------------------------------------------------------------===//

#include "CpuRowsFixture.h"
#include "codegen/Lower/LowerRegion.h"
#include "codegen/Lower/Passes.h"
#include "dialect/IR/Regions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "test/unit/RandomRegion.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

namespace {
struct CpuRegions : CpuRows {
  CpuRegions() {
    context.loadDialect<MPDialect>();
    loadKernelDialects(context);
  }
  OwningOpRef<ModuleOp> lowered(const std::string &text);
  void check(const std::string &text, uint64_t seed);

  MLIRContext context{MLIRContext::Threading::DISABLED};
  unsigned kernels = 0;
};
} // namespace

OwningOpRef<ModuleOp> CpuRegions::lowered(const std::string &text) {
  auto module = parseSourceString<ModuleOp>(text, &context);
  auto pm = PassManager::on<ModuleOp>(&context);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  OutlineHotRegionsOptions options;
  options.all = true;
  options.target = "sm_90";
  functions.addPass(createNormalize());
  functions.addPass(createOutlineHotRegions(options));
  functions.addPass(createLowerRegionsToLinalg());
  EXPECT_TRUE(module && succeeded(pm.run(*module)));
  return module;
}

void CpuRegions::check(const std::string &text, uint64_t seed) {
  parse(text);
  if (HasFatalFailure())
    return;
  ++kernels;
  Tensors inputs = makeInputs(3, Data::Integer);
  for (Tensor &input : inputs)
    for (auto [i, value] : llvm::enumerate(input.floats))
      value = double((seed * 31 + i * 7 + input.floats.size()) % 31) - 15;
  Tensors found = run(inputs, 3), expected = interpret(inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(expected, found))) {
    auto &[right, result] = pair;
    // Which of two zeros is the larger one is not specified.
    for (int64_t at = 0; at != right.numElements(); ++at)
      if (!std::isnan(right.number(at)) || !std::isnan(result.number(at)))
        ASSERT_EQ(right.number(at), result.number(at))
            << "result " << i << " at " << at << "\n"
            << text;
  }
}

TEST_F(CpuRegions, ComputeWhatTheInterpreterDoes) {
  const char *given = std::getenv("MPOPT_FUZZ_GRAPHS");
  uint64_t graphs = given ? std::strtoull(given, nullptr, 10) : 40;
  for (uint64_t seed = 0; seed != graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OwningOpRef<ModuleOp> module = lowered(randomRows(seed, /*isExact=*/true));
    module->walk([&](RegionOp region) {
      if (region.getKernel() && !HasFatalFailure())
        check(region.getKernel()->str(), seed);
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(kernels, graphs * 3 / 4);
}
