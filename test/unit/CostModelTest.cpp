//===- CostModelTest.cpp - what work costs --------------------------------===//

#include "passes/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir::mp;
using llvm::StringRef;

namespace {

/// Round figures, so that expectations can be computed by hand: 1 GB/s, 1 ms
/// per kernel; f32 1 GFLOP/s, bf16 ten times as fast where it is large.
constexpr StringRef kText = R"json({
  "schema": 1, "name": "round", "device": "cpu",
  "source": {"all": "made up"},
  "bandwidth": 1e9, "launch": 1e-3,
  "casts": {"f32-bf16": 5e8},
  "classes": [
    {"name": "recurrent", "least": 4},
    {"name": "batched", "batch": 8, "flops": 2000000},
    {"name": "large"}],
  "types": {
    "f32": {"rates": {"recurrent": 1e9, "batched": 1e9, "large": 1e9}},
    "bf16": {"launch": 2e-3, "multiple": 8, "misaligned": 0.25,
             "tile": [16, 8, 16],
             "rates": {"recurrent": 1e9, "batched": 2e9, "large": 1e10}}}
})json";

CostModel parsed(StringRef text = kText) {
  llvm::Expected<CostModel> model = parseCostModel(text, "round.json");
  EXPECT_TRUE(bool(model));
  if (!model) {
    ADD_FAILURE() << llvm::toString(model.takeError());
    return CostModel();
  }
  return std::move(*model);
}

/// The error of kText with `from`, which it must have once, replaced.
std::string errorWith(StringRef from, StringRef to) {
  EXPECT_EQ(kText.count(from), 1u) << from.str();
  auto [before, after] = kText.split(from);
  std::string text = (before + to + after).str();
  llvm::Expected<CostModel> model = parseCostModel(text, "round.json");
  return model ? "no error" : llvm::toString(model.takeError());
}

std::string errorOf(StringRef nameOrPath) {
  llvm::Expected<CostModel> model = loadCostModel(nameOrPath);
  return model ? "no error" : llvm::toString(model.takeError());
}

TEST(CostModel, RooflineByHand) {
  CostModel model = parsed();
  // 2e9 operations at 1e9 per second, and 1 ms for the launch.
  EXPECT_DOUBLE_EQ(model.matmulSeconds("f32", 1, 1000, 1000, 1000), 2.001);
  EXPECT_DOUBLE_EQ(model.matmulSeconds("bf16", 1, 1024, 1024, 1024),
                   2.0 * 1024 * 1024 * 1024 / 1e10 + 2e-3);
  EXPECT_EQ(model.matmulCost("f32", 1, 1000, 1000, 1000)->bound,
            Bound::Compute);
  // k = 1 is 2e6 operations, but 4 MB of result and 8 kB of operands.
  auto outer = *model.matmulCost("f32", 1, 1000, 1000, 1);
  EXPECT_DOUBLE_EQ(outer.seconds, (4e6 + 8e3) / 1e9 + 1e-3);
  EXPECT_EQ(outer.bound, Bound::Memory);
  EXPECT_EQ(outer.shape->name, "recurrent");
  auto tiny = *model.matmulCost("f32", 1, 8, 8, 8);
  EXPECT_EQ(tiny.bound, Bound::Launch);
  EXPECT_NEAR(tiny.seconds, 1e-3, 2e-6);
}

TEST(CostModel, SweepsAndCasts) {
  CostModel model = parsed();
  EXPECT_DOUBLE_EQ(model.sweepSeconds(1e9), 1.001);
  EXPECT_DOUBLE_EQ(model.castSeconds("f32", "bf16", 1'000'000),
                   6e6 / 5e8 + 1e-3);
  EXPECT_DOUBLE_EQ(model.castSeconds("bf16", "f32", 1'000'000),
                   6e6 / 1e9 + 1e-3);
}

TEST(CostModel, ClassesLimitRates) {
  CostModel model = parsed();
  // In the class: 64 products of 2 * 64^3 at 2e9 per second.
  auto batched = *model.matmulCost("bf16", 64, 64, 64, 64);
  EXPECT_EQ(batched.shape->name, "batched");
  EXPECT_DOUBLE_EQ(batched.seconds, 64 * 2.0 * 64 * 64 * 64 / 2e9 + 2e-3);
  // Below eight products the class says nothing.
  EXPECT_EQ(model.matmulCost("bf16", 7, 64, 64, 64)->shape->name, "large");
  // Blocks of 16 rows: one row costs as much as four, the class's limit.
  EXPECT_DOUBLE_EQ(model.matmulSeconds("bf16", 1, 1, 8192, 8192) - 2e-3,
                   2.0 * 4 * 8192 * 8192 / 1e9);
}

TEST(CostModel, PenaltiesOfBlocksAndMultiples) {
  CostModel model = parsed();
  double aligned = model.matmulSeconds("bf16", 1, 1024, 1024, 1024) - 2e-3;
  double rows = model.matmulSeconds("bf16", 1, 1009, 1024, 1024) - 2e-3;
  EXPECT_DOUBLE_EQ(rows, aligned) << "1009 rows fill as many blocks as 1024";
  double columns = model.matmulSeconds("bf16", 1, 1024, 1023, 1024) - 2e-3;
  EXPECT_DOUBLE_EQ(columns, 4 * aligned);
  double depth = model.matmulSeconds("bf16", 1, 1024, 1024, 1020) - 2e-3;
  EXPECT_DOUBLE_EQ(depth, 4 * aligned);
  EXPECT_LT(model.matmulSeconds("f32", 1, 1023, 1023, 1023),
            model.matmulSeconds("f32", 1, 1024, 1024, 1024));
}

TEST(CostModel, HalfPaysWithItsNumber) {
  CostModel model = parsed();
  HalfVerdict large = model.halfPays("bf16", "f32", 1, 1024, 1024, 1024);
  EXPECT_TRUE(large.pays);
  EXPECT_NEAR(large.gain, 9.9, 0.1);
  HalfVerdict matvec = model.halfPays("bf16", "f32", 1, 1, 768, 768);
  EXPECT_FALSE(matvec.pays);
  EXPECT_EQ(matvec.text,
            "bf16 0.50 x f32 at 1x768x768: recurrent, compute bound");
  HalfVerdict tiny = model.halfPays("bf16", "f32", 12, 16, 16, 16);
  EXPECT_FALSE(tiny.pays);
  EXPECT_EQ(tiny.text,
            "bf16 0.54 x f32 at 12 of 16x16x16: batched, launch bound");
  HalfVerdict none = model.halfPays("f16", "f32", 1, 1024, 1024, 1024);
  EXPECT_FALSE(none.pays);
  EXPECT_EQ(none.text, "round has no f16 products");
  EXPECT_TRUE(std::isinf(model.matmulSeconds("f16", 1, 8, 8, 8)));
}

TEST(CostModel, EmptyProductsCostTheirLaunch) {
  EXPECT_EQ(parsed().matmulSeconds("bf16", 1, 0, 8, 8), 2e-3);
  EXPECT_EQ(parsed().matmulSeconds("f32", 0, 8, 8, 8), 1e-3);
}

TEST(CostModel, CacheIsFasterAndGrowthNeverPays) {
  CostModel model = parsed();
  model.caches = {{4e6, 1e10}, {5e6, 2e9}};
  EXPECT_DOUBLE_EQ(model.matmulSeconds("f32", 1, 900, 900, 1),
                   std::max((4 * 810e3 + 7200) / 1e10, 2 * 810e3 / 1e9) + 1e-3);
  EXPECT_DOUBLE_EQ(model.matmulSeconds("f32", 1, 1100, 1100, 1),
                   (4 * 1210e3 + 8800) / 2e9 + 1e-3);
  EXPECT_DOUBLE_EQ(model.matmulSeconds("f32", 1, 1200, 1200, 1),
                   (4 * 1440e3 + 9600) / 1e9 + 1e-3);
}

/// Every built-in model loads, and says where its figures are from.
class Builtin : public testing::TestWithParam<StringRef> {
protected:
  CostModel model() {
    llvm::Expected<CostModel> loaded = loadCostModel(GetParam());
    if (loaded)
      return std::move(*loaded);
    ADD_FAILURE() << llvm::toString(loaded.takeError());
    return parsed();
  }
};

TEST_P(Builtin, LoadsUnderItsName) {
  CostModel loaded = model();
  EXPECT_EQ(loaded.name, GetParam());
  EXPECT_EQ(loaded.device, GetParam().starts_with("cpu") ? "cpu" : "cuda");
  for (StringRef type : {"f32", "bf16", "f16"})
    EXPECT_TRUE(loaded.ratesOf(type)) << type.str();
  EXPECT_EQ(bool(loaded.ratesOf("tf32")), loaded.device == "cuda");
}

TEST_P(Builtin, GrowsWithEverySize) {
  CostModel loaded = model();
  unsigned seed = 17;
  std::mt19937 random(seed);
  auto size = [&] { return int64_t(16) << (random() % 9); };
  for (int i = 0; i < 2000; ++i) {
    std::array<int64_t, 4> sizes{1 + int64_t(random() % 20), size(), size(),
                                 size()};
    // The multiples of 16 have no penalty; also the sizes below the blocks.
    if (i % 4 == 0)
      sizes[1] = 1 + random() % 15;
    std::array<int64_t, 4> larger = sizes;
    unsigned grown = random() % 4;
    larger[grown] += grown < 2 ? 1 + random() % 40 : 16 * (1 + random() % 40);
    for (const MatmulRates &rates : loaded.types) {
      auto [b, m, n, k] = sizes;
      auto [b2, m2, n2, k2] = larger;
      EXPECT_LE(loaded.matmulSeconds(rates.type, b, m, n, k),
                loaded.matmulSeconds(rates.type, b2, m2, n2, k2))
          << rates.type << ' ' << b << ' ' << m << ' ' << n << ' ' << k
          << " then " << b2 << ' ' << m2 << ' ' << n2 << ' ' << k2;
    }
  }
}

TEST_P(Builtin, IsNoFasterThanItsRoofs) {
  CostModel loaded = model();
  for (const MatmulRates &rates : loaded.types) {
    double best = *llvm::max_element(rates.rates);
    EXPECT_NEAR(loaded.intensityLimit(rates.type), best / loaded.bandwidth, 1);
    double seconds = loaded.matmulSeconds(rates.type, 1, 2048, 2048, 2048);
    EXPECT_GE(seconds, 2.0 * 2048 * 2048 * 2048 / best);
    EXPECT_GE(loaded.matmulSeconds(rates.type, 1, 1, 64, 64), rates.launch);
  }
}

/// Names of tests are made of letters, digits and underscores.
std::string testName(const testing::TestParamInfo<StringRef> &info) {
  std::string name = info.param.str();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(CostModel, Builtin,
                         testing::ValuesIn(builtinCostModels()), testName);

TEST(CostModel, TensorCoresPayWhereTheyShould) {
  llvm::Expected<CostModel> model = loadCostModel("sm_90");
  ASSERT_TRUE(bool(model));
  EXPECT_TRUE(model->halfPays("bf16", "tf32", 1, 4096, 4096, 4096).pays);
  EXPECT_TRUE(model->halfPays("fp8", "bf16", 1, 4096, 4096, 4096).pays);
  EXPECT_FALSE(model->halfPays("bf16", "f32", 1, 1, 64, 64).pays);
  EXPECT_FALSE(model->halfPays("fp8", "bf16", 1, 4096, 4100, 4096).pays);
}

TEST(CostModel, HalfPaysOnTheCpusThatCanMultiplyIt) {
  for (auto [name, large] : {std::pair<StringRef, bool>{"cpu-amx", true},
                             {"cpu-avx512_bf16", false},
                             {"cpu-avx512", false},
                             {"cpu-avx2", false}}) {
    llvm::Expected<CostModel> model = loadCostModel(name);
    ASSERT_TRUE(bool(model));
    EXPECT_EQ(model->halfPays("bf16", "f32", 1, 1024, 1024, 1024).pays, large)
        << name.str();
    // Steps of a small recurrent layer.
    for (int64_t rows : {1, 8, 16})
      EXPECT_FALSE(model->halfPays("bf16", "f32", 1, rows, 512, 128).pays)
          << name.str() << ' ' << rows;
  }
  llvm::Expected<CostModel> amx = loadCostModel("cpu-amx");
  ASSERT_TRUE(bool(amx));
  EXPECT_EQ(amx->halfPays("bf16", "f32", 1, 64, 64, 64).text,
            "bf16 0.18 x f32 at 64x64x64: small, launch bound");
}

TEST(CostModelErrors, NameTheFileAndTheKey) {
  EXPECT_EQ(errorWith("\"bandwidth\": 1e9", "\"bandwidth\": \"fast\""),
            "round.json: key 'bandwidth' must be a positive number");
  EXPECT_EQ(errorWith("\"launch\": 1e-3", "\"launch\": 0"),
            "round.json: key 'launch' must be a positive number");
  EXPECT_EQ(errorWith("\"large\": 1e10", "\"lrge\": 1e10"),
            "round.json: unknown key 'types.bf16.rates.lrge'; did you mean "
            "'large'?");
  EXPECT_EQ(errorWith(", \"large\": 1e10", ""),
            "round.json: key 'types.bf16.rates.large' is missing");
  EXPECT_EQ(errorWith("[16, 8, 16]", "[16, 8]"),
            "round.json: key 'types.bf16.tile' must be a list of three counts");
  EXPECT_EQ(errorWith("[16, 8, 16]", "[16, 8, 0]"),
            "round.json: key 'types.bf16.tile' must be a count from 1 to a "
            "million");
  EXPECT_EQ(errorWith("\"misaligned\": 0.25", "\"misaligned\": 4"),
            "round.json: key 'types.bf16.misaligned' must be at most 1");
  EXPECT_EQ(errorWith("\"device\": \"cpu\"", "\"device\": \"tpu\""),
            "round.json: key 'device' must be 'cpu' or 'cuda'");
  EXPECT_EQ(errorWith("{\"name\": \"large\"}", "3"),
            "round.json: key 'classes[2]' must be an object");
  EXPECT_EQ(errorWith("\"batch\": 8", "\"bath\": 8"),
            "round.json: unknown key 'classes[1].bath'; did you mean 'batch'?");
  EXPECT_EQ(
      errorWith("{\"name\": \"large\"}", "{\"name\": \"large\", \"least\": 9}"),
      "round.json: the last of 'classes' must have no limits");
  EXPECT_EQ(errorWith("\"name\": \"batched\"", "\"name\": \"recurrent\""),
            "round.json: two classes are called 'recurrent'");
  EXPECT_EQ(errorWith("\"f32\": {", "\"f23\": {"),
            "round.json: unknown key 'types.f23'; did you mean 'f32'?");
  EXPECT_EQ(errorWith("\"f32-bf16\"", "\"f32-int\""),
            "round.json: key 'casts.f32-int' must name two types, such as "
            "'f32-bf16'");
  EXPECT_EQ(errorWith("\"source\": {\"all\": \"made up\"},", ""),
            "round.json: key 'source' is missing");
}

TEST(CostModelErrors, Caches) {
  auto with = [](StringRef caches) {
    return errorWith("\"casts\":",
                     ("\"caches\": " + caches + ", \"casts\":").str());
  };
  EXPECT_EQ(with("[{\"bytes\": 1e6, \"bandwidth\": 2e9}]"), "no error");
  EXPECT_EQ(with("[{\"bytes\": 1e6, \"bandwidth\": 2e8}]"),
            "round.json: key 'caches[0].bandwidth' must be at least that of "
            "memory");
  EXPECT_EQ(with("[{\"bytes\": 1e6, \"bandwidth\": 2e9}, "
                 "{\"bytes\": 2e6, \"bandwidth\": 3e9}]"),
            "round.json: 'caches' must get larger and slower");
  EXPECT_EQ(with("[7]"), "round.json: key 'caches[0]' must be an object");
  EXPECT_EQ(with("7"), "round.json: key 'caches' must be a list");
}

TEST(CostModelErrors, Schema) {
  EXPECT_EQ(errorWith("\"schema\": 1", "\"schema\": 2"),
            "round.json: key 'schema' is 2, this program reads 1; write the "
            "file again with 'mpopt calibrate'");
  EXPECT_EQ(errorWith("\"schema\": 1,", ""),
            "round.json: is no cost model: it has no number under the key "
            "'schema'");
  EXPECT_TRUE(StringRef(errorWith("\"schema\": 1,", "\"schema\": 1"))
                  .starts_with("round.json: no JSON: "));
}

TEST(CostModelErrors, Names) {
  EXPECT_EQ(errorOf("sm_91"),
            "no cost model 'sm_91' is built in, and no file has that name; did "
            "you mean 'sm_90'?");
  EXPECT_TRUE(StringRef(errorOf("quantum")).contains("; built in: cpu-amx, "));
  EXPECT_EQ(errorOf("nowhere/model.json"),
            "nowhere/model.json: cannot read: No such file or directory");
}

TEST(CostModel, LoadsFiles) {
  llvm::SmallString<64> path;
  int descriptor;
  ASSERT_FALSE(
      llvm::sys::fs::createTemporaryFile("model", "json", descriptor, path));
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << kText;
  llvm::Expected<CostModel> model = loadCostModel(path);
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(model->name, "round");
  EXPECT_FALSE(llvm::sys::fs::remove(path));
}

TEST(CostModel, ChoosesByCpuFeatures) {
  llvm::StringMap<bool> features;
  EXPECT_EQ(cpuCostModel(features), "cpu-avx2");
  features["avx512f"] = true;
  EXPECT_EQ(cpuCostModel(features), "cpu-avx2");
  features["avx512bw"] = true;
  EXPECT_EQ(cpuCostModel(features), "cpu-avx512");
  features["avx512bf16"] = true;
  EXPECT_EQ(cpuCostModel(features), "cpu-avx512_bf16");
  features["amx-tile"] = true;
  features["amx-bf16"] = false;
  EXPECT_EQ(cpuCostModel(features), "cpu-avx512_bf16");
  features["amx-bf16"] = true;
  EXPECT_EQ(cpuCostModel(features), "cpu-amx");
  EXPECT_TRUE(llvm::is_contained(builtinCostModels(), hostCostModel()));
}

TEST(CostModel, ChoosesByComputeCapability) {
  EXPECT_EQ(cudaCostModel(80), "sm_80");
  EXPECT_EQ(cudaCostModel(87), "sm_86");
  EXPECT_EQ(cudaCostModel(90), "sm_90");
  EXPECT_EQ(cudaCostModel(103), "sm_100");
  EXPECT_EQ(cudaCostModel(121), "sm_120");
  EXPECT_EQ(cudaCostModel(75), std::nullopt);
}

} // namespace
