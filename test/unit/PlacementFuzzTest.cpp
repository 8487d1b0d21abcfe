//===- PlacementFuzzTest.cpp - stored types in random graphs --------------===//
//
// What mp-assign-precision and mp-apply-precision do to random graphs, and
// edits of it that the check must refuse.
//
//===----------------------------------------------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "passes/Passes.h"
#include "test/unit/FuzzFixture.h"
#include "test/unit/Mutate.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
/// A machine that multiplies small matrices of halves much faster, so that
/// calls of f32 become ones of halves, and starts kernels for nothing.
constexpr StringRef kCostModel = R"json({
  "schema": 1, "name": "eager", "device": "cuda",
  "source": {"all": "made up"},
  "bandwidth": 1e9, "launch": 1e-12,
  "classes": [{"name": "all"}],
  "types": {
    "f32": {"rates": {"all": 1e6}},
    "bf16": {"rates": {"all": 1e9}},
    "f16": {"rates": {"all": 1e9}}}
})json";

struct PlacementFuzz : Fuzz {
  SmallString<128> costModel;

  void SetUp() override {
    int file;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("mpopt-fuzz", "json", file,
                                                    costModel));
    llvm::raw_fd_ostream(file, /*shouldClose=*/true) << kCostModel;
  }
  void TearDown() override { EXPECT_FALSE(llvm::sys::fs::remove(costModel)); }

  OwningOpRef<ModuleOp> makeGraph(uint64_t seed) {
    return makeRandomGraph(&context, seed, /*isTraced=*/true,
                           /*hasProducts=*/true);
  }

  void choose(ModuleOp module, double epsilon, Half precision = Half::None) {
    run(module, [&](OpPassManager &pm) {
      pm.addPass(createNormalize());
      pm.addPass(createRaise());
      PinTypesOptions pin;
      pin.half = precision == Half::F16 ? Half::F16 : Half::Auto;
      pm.addPass(createPinTypes(pin));
      AssignPrecisionOptions assign;
      assign.numerics = Numerics::Relaxed;
      assign.epsilon = epsilon;
      assign.minElements = 1;
      assign.precision = precision;
      assign.costModel = costModel.str().str();
      pm.addPass(createAssignPrecision(assign));
      pm.addPass(createApplyPrecision());
    });
  }
  void finish(ModuleOp module) {
    run(module, [&](OpPassManager &pm) {
      pm.addPass(createEliminateCasts({Numerics::Precise}));
      pm.addPass(createLower());
    });
  }

  static SmallVector<DictionaryAttr> recordsOf(ModuleOp module,
                                               StringRef rule) {
    SmallVector<DictionaryAttr> found;
    auto all = functionOf(module)->getAttrOfType<ArrayAttr>(
        MPDialect::kRewritesAttrName);
    if (all)
      for (auto entry : all.getAsRange<DictionaryAttr>())
        if (entry.getAs<StringAttr>("rule").getValue() == rule &&
            entry.getAs<StringAttr>("status").getValue() == "applied")
          found.push_back(entry);
    return found;
  }
};
} // namespace

static CastOp convert(OpBuilder &builder, Operation *op, Value value,
                      Type element) {
  return CastOp::create(builder, op->getLoc(), value, element,
                        CastOrigin::user);
}

static void roundRead(OpOperand &use, Type half) {
  OpBuilder builder(use.getOwner());
  Type wide = getElementTypeOrSelf(use.get().getType());
  Value narrow = convert(builder, use.getOwner(), use.get(), half);
  use.set(convert(builder, use.getOwner(), narrow, wide));
}

/// Gives the result of a product the type `computed`; readers get the old one.
static void computeIn(Operation *product, Type computed) {
  Value result = product->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  result.setType(type.clone(computed));
  OpBuilder builder(product->getContext());
  builder.setInsertionPointAfter(product);
  CastOp back = convert(builder, product, result, type.getElementType());
  result.replaceAllUsesExcept(back.getOutput(), back);
}

static void callHalf(Operation *product, Type half, bool keepsResult) {
  OpBuilder builder(product);
  for (OpOperand &use : product->getOpOperands())
    use.set(convert(builder, product, use.get(), half));
  if (!keepsResult)
    computeIn(product, half);
}

/// Does to `module` what the record of `chosen` says, and nothing else. The
/// numbers of rounded reads, calls and wide results.
static std::array<unsigned, 3> rewriteAsRecorded(ModuleOp module,
                                                 ModuleOp chosen) {
  llvm::DenseMap<int64_t, Operation *> operations;
  for (Operation &op : PlacementFuzz::functionOf(module).getOps())
    operations[nodeOf(op.getLoc())] = &op;
  std::array<unsigned, 3> counts = {};
  auto forEach = [&](StringRef rule, unsigned &count, auto rewrite) {
    for (DictionaryAttr entry : PlacementFuzz::recordsOf(chosen, rule)) {
      ++count;
      rewrite(operations.lookup(entry.getAs<IntegerAttr>("node").getInt()),
              entry);
    }
  };
  auto halfOf = [](DictionaryAttr entry) {
    return entry.getAs<TypeAttr>("half").getValue();
  };
  forEach("round-store", counts[0], [&](Operation *op, DictionaryAttr entry) {
    roundRead(op->getOpOperand(entry.getAs<IntegerAttr>("operand").getInt()),
              halfOf(entry));
  });
  forEach("half-call", counts[1], [&](Operation *op, DictionaryAttr entry) {
    callHalf(op, halfOf(entry), entry.contains("result"));
  });
  forEach("wide-result", counts[2], [&](Operation *op, DictionaryAttr) {
    computeIn(op, Float32Type::get(op->getContext()));
  });
  return counts;
}

// What the passes do is accepted, and is to the bit what the record says.
TEST_F(PlacementFuzz, RewritesAsRecorded) {
  std::array<unsigned, 3> graphs = {};
  for (uint64_t seed = first; seed != last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto before = makeGraph(seed);
    auto after = clone(*before);
    static const Half halves[] = {Half::None, Half::BF16, Half::None,
                                  Half::F16};
    choose(*after, seed % 8 < 4 ? 0.1 : 10, halves[seed % 4]);
    EXPECT_TRUE(accepts(*before, *after))
        << errors << textOf(*before, true) << textOf(*after, true);
    auto expected = clone(*before);
    auto counts = rewriteAsRecorded(*expected, *after);
    for (auto [graph, count] : llvm::zip(graphs, counts))
      graph += count != 0;
    EXPECT_TRUE(computeEqually(*expected, *after))
        << textOf(*before) << textOf(*after);
    finish(*after);
    EXPECT_TRUE(accepts(*before, *after))
        << errors << textOf(*before, true) << textOf(*after, true);
    if (HasFailure())
      return; // one graph is enough to look at
  }
  // Reads, calls, results.
  for (size_t rule = 0; rule != graphs.size(); ++rule)
    EXPECT_GT(graphs[rule], (last - first) / 60) << rule;
}

// Whatever differs in a bit from what the record says is refused.
TEST_F(PlacementFuzz, CheckRefusesWhatNoRecordSays) {
  Refusals refused = {};
  for (uint64_t seed = first; seed != last; ++seed) {
    auto before = makeGraph(seed);
    auto chosen = clone(*before);
    choose(*chosen, 10, seed % 2 ? Half::BF16 : Half::None);
    if (textOf(*chosen).find("\"applied\"") == std::string::npos)
      continue;
    refuseMutations(*before, *chosen, seed, refused);
    if (HasFatalFailure())
      return;
  }
  expectAllRefused(refused);
}

/// Changes the first record of `rule` in the record of `module`.
static bool
editRecord(ModuleOp module, StringRef rule,
           llvm::function_ref<void(NamedAttrList &, Builder &)> edit) {
  func::FuncOp func = PlacementFuzz::functionOf(module);
  auto all = func->getAttrOfType<ArrayAttr>(MPDialect::kRewritesAttrName);
  SmallVector<Attribute> entries(all.begin(), all.end());
  Builder builder(module.getContext());
  for (Attribute &attr : entries) {
    auto entry = cast<DictionaryAttr>(attr);
    if (entry.getAs<StringAttr>("rule").getValue() != rule)
      continue;
    NamedAttrList list(entry);
    edit(list, builder);
    attr = list.getDictionary(module.getContext());
    func->setAttr(MPDialect::kRewritesAttrName, builder.getArrayAttr(entries));
    return true;
  }
  return false;
}

// A record of another reader, another half type or another rule, and a budget
// that does not hold.
TEST_F(PlacementFuzz, CheckRefusesForgedRecords) {
  unsigned readers = 0, halves = 0, budgets = 0;
  for (uint64_t seed = first; seed != last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto before = makeGraph(seed);
    auto chosen = clone(*before);
    choose(*chosen, 10);
    auto expected = clone(*before);
    if (rewriteAsRecorded(*expected, *chosen)[0] == 0 ||
        computeEqually(*before, *chosen))
      continue;
    auto refuses = [&](auto edit) {
      auto after = clone(*chosen);
      edit(*after);
      auto claimed = clone(*before);
      rewriteAsRecorded(*claimed, *after);
      if (computeEqually(*claimed, *chosen))
        return false;
      EXPECT_FALSE(accepts(*before, *after))
          << textOf(*before, true) << textOf(*after, true);
      return true;
    };
    readers += refuses([](ModuleOp after) {
      editRecord(after, "round-store", [](NamedAttrList &entry, Builder &b) {
        entry.set("rule", b.getStringAttr("fold-same-type"));
        entry.set("contract", b.getStringAttr("strict"));
      });
    });
    halves += refuses([](ModuleOp after) {
      editRecord(after, "round-store", [](NamedAttrList &entry, Builder &b) {
        bool isF16 = entry.get("half") == TypeAttr::get(b.getF16Type());
        entry.set("half", TypeAttr::get(isF16 ? Type(b.getBF16Type())
                                              : Type(b.getF16Type())));
      });
    });
    auto after = clone(*chosen);
    func::FuncOp func = functionOf(*after);
    NamedAttrList placement(
        func->getAttrOfType<DictionaryAttr>(MPDialect::kPlacementAttrName));
    if (cast<FloatAttr>(placement.get("noise")).getValueAsDouble() == 0)
      continue;
    placement.set("epsilon", Builder(&context).getF64FloatAttr(0));
    func->setAttr(MPDialect::kPlacementAttrName,
                  placement.getDictionary(&context));
    EXPECT_FALSE(accepts(*before, *after));
    ++budgets;
    if (HasFailure())
      return;
  }
  for (unsigned count : {readers, halves, budgets})
    EXPECT_GT(count, (last - first) / 60);
}
