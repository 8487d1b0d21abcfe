//===- FuzzTest.cpp - casts in random graphs ------------------------------===//
//
// The passes over conversions, and edits that the check must refuse.
//
//===----------------------------------------------------------------------===//

#include "dialect/IR/MPOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "test/unit/FuzzFixture.h"
#include "test/unit/Mutate.h"

using namespace mlir;
using namespace mlir::mp;

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

// Pins verify, change no bit, and a second run finds the same ones.
TEST_F(Fuzz, Pins) {
  for (Half half : {Half::BF16, Half::F16})
    testPasses(/*isStrict=*/true, [half](OpPassManager &pm) {
      PinTypesOptions options;
      options.half = half;
      pm.addPass(createPinTypes(options));
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
        12497, 20326, 20654, 28963, 37426, 48674, 317595}) {
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

// Whatever changes a bit is refused.
TEST_F(Fuzz, CheckRefusesWhatChangesBits) {
  Refusals refused = {};
  for (uint64_t seed = first; seed != last; ++seed) {
    auto before = makeRandomGraph(&context, seed);
    refuseMutations(*before, *before, seed, refused);
    if (HasFatalFailure())
      return;
  }
  expectAllRefused(refused);
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
