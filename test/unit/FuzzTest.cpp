//===- FuzzTest.cpp - passes and the check on random graphs ---------------===//
//
// Two witnesses that share no code: the reference interpreter says whether two
// graphs give the same bits, the check says whether one is a legal rewrite of
// the other. MPOPT_FUZZ_GRAPHS sets the number of graphs, MPOPT_FUZZ_SEED the
// first seed.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Check/Check.h"
#include "passes/Passes.h"
#include "test/unit/Mutate.h"
#include "test/unit/RandomGraph.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

static uint64_t environment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

namespace {
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

  /// Runs the passes on every graph and has both witnesses look at the result.
  void testPasses(bool isStrict, llvm::function_ref<void(OpPassManager &)> add,
                  bool isTraced = false) {
    unsigned changed = 0;
    for (uint64_t seed = first; seed != last; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      auto before = makeRandomGraph(&context, seed, isTraced);
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
      EXPECT_EQ(textOf(*after, true), textOf(*again, true));
      if (HasFailure())
        return; // one graph is enough to look at
    }
    // A pass that does nothing passes every test.
    EXPECT_GT(changed, (last - first) / 4);
  }
};
} // namespace

TEST_F(Fuzz, GraphsRunInTheInterpreter) {
  for (uint64_t seed = first; seed != last; ++seed) {
    auto module = makeRandomGraph(&context, seed);
    ASSERT_TRUE(succeeded(verify(*module))) << seed;
    EXPECT_TRUE(computeEqually(*module, *module)) << seed;
    EXPECT_EQ(textOf(*module), textOf(*makeRandomGraph(&context, seed)));
    EXPECT_TRUE(accepts(*module, *module)) << errors;
  }
}

TEST_F(Fuzz, Canonicalizer) {
  testPasses(/*isStrict=*/true,
             [](OpPassManager &pm) { pm.addPass(createCanonicalizerPass()); });
}

TEST_F(Fuzz, EliminateCastsStrict) {
  testPasses(/*isStrict=*/true, [](OpPassManager &pm) {
    pm.addPass(createEliminateCasts({Numerics::Strict}));
  });
}

TEST_F(Fuzz, EliminateCastsPrecise) {
  testPasses(/*isStrict=*/false, [](OpPassManager &pm) {
    pm.addPass(createEliminateCasts({Numerics::Precise}));
  });
}

/// From a traced graph and back to one.
static void addPipeline(OpPassManager &pm, Numerics numerics) {
  pm.addPass(createNormalize());
  pm.addPass(createRaise());
  pm.addPass(createEliminateCasts({numerics}));
  pm.addPass(createLower());
}

TEST_F(Fuzz, PipelineStrict) {
  testPasses(
      /*isStrict=*/true,
      [](OpPassManager &pm) { addPipeline(pm, Numerics::Strict); },
      /*isTraced=*/true);
}

TEST_F(Fuzz, PipelinePrecise) {
  testPasses(
      /*isStrict=*/false,
      [](OpPassManager &pm) { addPipeline(pm, Numerics::Precise); },
      /*isTraced=*/true);
}

// Each showed a fault of a pass or of the check once.
TEST_F(Fuzz, SeedsOfOldFaults) {
  for (uint64_t seed :
       {1251, 2526, 3324, 4676, 4731, 4919, 5335, 5488, 8626, 10297, 11578,
        12497, 20326, 20654, 28963, 37426, 48674}) {
    first = seed;
    last = seed + 1;
    testPasses(
        /*isStrict=*/false,
        [](OpPassManager &pm) { addPipeline(pm, Numerics::Precise); },
        /*isTraced=*/true);
    testPasses(/*isStrict=*/false, [](OpPassManager &pm) {
      pm.addPass(createEliminateCasts({Numerics::Precise}));
    });
  }
}

// Whatever changes a bit is refused. (An edit may change none by chance: a
// rounding of a value that fits, an operand that is multiplied by zero.)
TEST_F(Fuzz, CheckRefusesWhatChangesBits) {
  std::array<unsigned, kNumMutations> refused = {};
  for (uint64_t seed = first; seed != last; ++seed) {
    auto before = makeRandomGraph(&context, seed);
    for (int kind = 0; kind != kNumMutations; ++kind) {
      auto after = clone(*before);
      if (!mutate(functionOf(*after), Mutation(kind), seed))
        continue;
      ASSERT_TRUE(succeeded(verify(*after))) << seed << textOf(*after);
      if (computeEqually(*before, *after))
        continue;
      ++refused[kind];
      ASSERT_FALSE(accepts(*before, *after))
          << "seed " << seed << " mutation " << kind << textOf(*before)
          << textOf(*after);
    }
  }
  for (int kind = 0; kind != kNumMutations; ++kind)
    EXPECT_GT(refused[kind], (last - first) / 60) << "mutation " << kind;
}

/// Claims in the record of `func` that the rounding of node `node` was dropped.
static void claimDropped(func::FuncOp func, int64_t node) {
  Builder b(func.getContext());
  auto entry = b.getDictionaryAttr(
      {b.getNamedAttr("rule", b.getStringAttr("drop-autocast-rounding")),
       b.getNamedAttr("contract", b.getStringAttr("precise")),
       b.getNamedAttr("status", b.getStringAttr("applied")),
       b.getNamedAttr("node", b.getI64IntegerAttr(node))});
  func->setAttr(MPDialect::kRewritesAttrName, b.getArrayAttr({entry}));
}

// A user's rounding, or one that a comparison reads, stays even if a record
// claims that it was dropped by right.
TEST_F(Fuzz, CheckRefusesForgedRecords) {
  unsigned users = 0, observed = 0;
  for (uint64_t seed = first; seed != last; ++seed) {
    auto before = makeRandomGraph(&context, seed);
    auto casts = functionOf(*before).getOps<CastOp>();
    for (CastOp narrowing : casts) {
      if (!isa<FloatType>(narrowing.getTo()) || narrowing.isExact())
        continue;
      bool isUsers = narrowing.getOrigin() == CastOrigin::user;
      bool isObserved = llvm::any_of(narrowing->getUsers(), [](Operation *op) {
        auto widening = dyn_cast<CastOp>(op);
        return widening && llvm::any_of(op->getUsers(), [](Operation *reader) {
                 auto aten = dyn_cast<AtenOp>(reader);
                 return aten && (aten.getOpKind() == OpKind::Compare ||
                                 aten.getOpKind() == OpKind::Rounding);
               });
      });
      if (!isUsers && !isObserved)
        continue;
      auto after = clone(*before);
      int64_t node =
          cast<IntegerAttr>(cast<FusedLoc>(narrowing.getLoc()).getMetadata())
              .getInt();
      for (CastOp copy :
           llvm::make_early_inc_range(functionOf(*after).getOps<CastOp>()))
        if (copy.getLoc() == narrowing.getLoc())
          for (Operation *user : copy->getUsers())
            if (user->getResult(0).getType() == copy.getInput().getType() &&
                isa<CastOp>(user))
              user->getResult(0).replaceAllUsesWith(copy.getInput());
      claimDropped(functionOf(*after), node);
      ASSERT_FALSE(accepts(*before, *after))
          << "seed " << seed << " node " << node << textOf(*before);
      (isUsers ? users : observed) += 1;
    }
  }
  EXPECT_GT(users, (last - first) / 2);
  EXPECT_GT(observed, (last - first) / 60);
}
