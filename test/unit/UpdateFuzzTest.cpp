//===- UpdateFuzzTest.cpp - fusing random updates -------------------------===//
//
// Whatever an optimizer computes, one sweep computes the same bits, and so does
// what the framework gets back.
//
//===----------------------------------------------------------------------===//

#include "dialect/IR/MPOps.h"
#include "passes/Passes.h"
#include "test/unit/FuzzFixture.h"
#include "test/unit/RandomUpdate.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
struct UpdateFuzz : Fuzz {
  void testPasses(llvm::function_ref<void(OpPassManager &)> add) {
    Fuzz::testPasses(/*isStrict=*/true, add, [&](uint64_t seed) {
      return makeRandomUpdate(&context, seed);
    });
  }
  static bool isFused(ModuleOp module) {
    return !functionOf(module).getOps<ScaledUpdateOp>().empty();
  }
};
} // namespace

static void addFusing(OpPassManager &pm) {
  pm.addPass(createNormalize());
  pm.addPass(createExpandForeach());
  pm.addPass(createFuseScaledUpdate());
}

TEST_F(UpdateFuzz, ExpandForeach) {
  testPasses([](OpPassManager &pm) {
    pm.addPass(createNormalize());
    pm.addPass(createExpandForeach());
  });
}

TEST_F(UpdateFuzz, FuseScaledUpdate) { testPasses(addFusing); }

TEST_F(UpdateFuzz, FuseAndLower) {
  testPasses([](OpPassManager &pm) {
    addFusing(pm);
    pm.addPass(createLower());
  });
}

/// The first operation in the body of an update that subtracts; null for none.
static AtenOp findSubtraction(func::FuncOp func) {
  AtenOp found;
  func.walk([&](AtenOp op) {
    if (op.getCallee() == "aten.sub.Tensor" &&
        isa<ScaledUpdateOp>(op->getParentOp()) &&
        op->getOperand(0) != op->getOperand(1))
      found = op;
  });
  return found;
}

// Both witnesses look into the body: an edit there that changes bits is seen.
TEST_F(UpdateFuzz, CheckRefusesAnEditedBody) {
  unsigned fused = 0, refused = 0;
  for (uint64_t seed = first; seed != last; ++seed) {
    auto before = makeRandomUpdate(&context, seed);
    auto after = clone(*before);
    run(*after, addFusing);
    fused += isFused(*after);
    AtenOp op = findSubtraction(functionOf(*after));
    if (!op)
      continue;
    SmallVector<Value> swapped = {op->getOperand(1), op->getOperand(0)};
    op->setOperands(swapped);
    if (computeEqually(*before, *after))
      continue;
    ++refused;
    ASSERT_FALSE(accepts(*before, *after)) << "seed " << seed;
  }
  EXPECT_GT(fused, (last - first) / 4);
  EXPECT_GT(refused, (last - first) / 60);
}
