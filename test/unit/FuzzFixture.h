//===- FuzzFixture.h - passes and the check on random graphs ----*- C++ -*-===//
//
// Two witnesses that share no code: the reference interpreter says whether two
// graphs give the same bits, the check says whether one is a legal rewrite of
// the other. MPOPT_FUZZ_GRAPHS sets the number of graphs, MPOPT_FUZZ_SEED the
// first seed.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_FUZZFIXTURE_H
#define TEST_UNIT_FUZZFIXTURE_H

#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Check/Check.h"
#include "test/unit/Mutate.h"
#include "test/unit/RandomGraph.h"
#include "gtest/gtest.h"

namespace mlir::mp {

using namespace mlir::mp::reference;

inline uint64_t environment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Fuzz : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string errors;
  uint64_t first = environment("MPOPT_FUZZ_SEED", 0);
  uint64_t last = first + environment("MPOPT_FUZZ_GRAPHS", 300);

  OwningOpRef<ModuleOp> clone(ModuleOp module) {
    return cast<ModuleOp>(module->clone());
  }
  static func::FuncOp functionOf(ModuleOp module) {
    return module.lookupSymbol<func::FuncOp>("f");
  }
  static std::string textOf(ModuleOp module, bool withLocations = false) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, OpPrintingFlags().enableDebugInfo(withLocations));
    return text;
  }

  bool accepts(ModuleOp before, ModuleOp after) {
    errors.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
      errors += d.str() + "\n";
      for (Diagnostic &note : d.getNotes())
        errors += "  " + note.str() + "\n";
      return success();
    });
    return succeeded(checkRewrites(before, after));
  }

  /// The bits of both on the same inputs, of several seeds.
  bool computeEqually(ModuleOp a, ModuleOp b) {
    for (uint64_t seed = 0; seed != 4; ++seed) {
      auto inputs = makeInputs(functionOf(a), seed);
      EXPECT_TRUE(bool(inputs));
      auto x = evaluate(functionOf(a), *inputs);
      auto y = evaluate(functionOf(b), *inputs);
      if (!x || !y) {
        ADD_FAILURE() << (x ? std::string() : llvm::toString(x.takeError()))
                      << (y ? std::string() : llvm::toString(y.takeError()))
                      << textOf(b);
        return false;
      }
      for (size_t i = 0; i != x->size(); ++i)
        if (firstDifference((*x)[i], (*y)[i]) >= 0)
          return false;
    }
    return true;
  }

  void run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> add) {
    auto pm = PassManager::on<ModuleOp>(&context);
    add(pm.nest<func::FuncOp>());
    ASSERT_TRUE(succeeded(pm.run(module)));
    ASSERT_TRUE(succeeded(verify(module)));
  }

  /// How often each mutation was refused.
  using Refusals = std::array<unsigned, kNumMutations>;

  /// Applies each mutation to `good`, a legal rewrite of `before`: what changes
  /// a bit is refused. (An edit may change none by chance: a rounding of a
  /// value that fits, an operand that is multiplied by zero.)
  void refuseMutations(ModuleOp before, ModuleOp good, uint64_t seed,
                       Refusals &refused) {
    for (int kind = 0; kind != kNumMutations; ++kind) {
      auto after = clone(good);
      if (!mutate(functionOf(*after), Mutation(kind), seed))
        continue;
      ASSERT_TRUE(succeeded(verify(*after))) << seed << textOf(*after);
      if (computeEqually(good, *after))
        continue;
      ++refused[kind];
      ASSERT_FALSE(accepts(before, *after))
          << "seed " << seed << " mutation " << kind << textOf(before)
          << textOf(*after);
    }
  }

  void expectAllRefused(const Refusals &refused) const {
    for (int kind = 0; kind != kNumMutations; ++kind)
      EXPECT_GT(refused[kind], (last - first) / 60) << "mutation " << kind;
  }

  using MakeGraph = llvm::function_ref<OwningOpRef<ModuleOp>(uint64_t)>;

  /// Runs the passes on the graph of every seed and has both witnesses look at
  /// the result.
  void testPasses(bool isStrict, llvm::function_ref<void(OpPassManager &)> add,
                  MakeGraph makeGraph) {
    unsigned changed = 0;
    for (uint64_t seed = first; seed != last; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      auto before = makeGraph(seed);
      ASSERT_TRUE(succeeded(verify(*before)));
      auto after = clone(*before);
      run(*after, add);
      changed += textOf(*before) != textOf(*after);
      EXPECT_TRUE(accepts(*before, *after))
          << errors << textOf(*before) << textOf(*after);
      if (isStrict)
        EXPECT_TRUE(computeEqually(*before, *after))
            << textOf(*before) << textOf(*after);
      auto again = clone(*after);
      run(*again, add);
      // Records of two runs are two: what is fused and lowered is fused again.
      for (ModuleOp module : {*after, *again})
        functionOf(module)->removeAttr(MPDialect::kRewritesAttrName);
      EXPECT_EQ(textOf(*after, true), textOf(*again, true));
      if (HasFailure())
        return; // one graph is enough to look at
    }
    // A pass that does nothing passes every test.
    EXPECT_GT(changed, (last - first) / 4);
  }

  void testPasses(bool isStrict, llvm::function_ref<void(OpPassManager &)> add,
                  bool isTraced = false) {
    testPasses(isStrict, add, [&](uint64_t seed) {
      return makeRandomGraph(&context, seed, isTraced);
    });
  }
};

} // namespace mlir::mp

#endif // TEST_UNIT_FUZZFIXTURE_H
