//===- LossScalerTest.cpp - the rules of loss scalers ---------------------===//

#include "runtime/LossScaler.h"
#include "runtime/Numerics.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace mpopt;

namespace {

/// The rule `name` from 2^10 with an interval of 3 and hysteresis 2 where it
/// has any.
ScalerRule small(std::string_view name) {
  const ScalerRule *found = findScalerRule(name);
  EXPECT_NE(found, nullptr) << name;
  ScalerRule rule = *found;
  rule.initScale = 1024.0;
  rule.growthInterval = 3;
  if (rule.hysteresis != Hysteresis::None)
    rule.hysteresisSteps = 2;
  EXPECT_EQ(whatIsWrong(rule), "");
  return rule;
}

/// Steps of `pattern`: 'O' overflows, all else is clean.
std::vector<float> scalesAfter(const ScalerRule &rule,
                               std::string_view pattern) {
  ScalerState state = initialState(rule);
  std::vector<float> scales;
  for (char step : pattern) {
    updateScale(rule, step == 'O' ? SawInf : 0, state);
    scales.push_back(state.scale);
  }
  return scales;
}

/// `times` steps that all saw `flags`.
void repeat(int times, const ScalerRule &rule, uint32_t flags,
            ScalerState &state) {
  for (int i = 0; i != times; ++i)
    updateScale(rule, flags, state);
}

std::vector<float> powersOfTwo(const std::vector<int> &exponents) {
  std::vector<float> scales;
  scales.reserve(exponents.size());
  for (int exponent : exponents)
    scales.push_back(std::ldexp(1.0f, exponent));
  return scales;
}

using Trace = std::pair<const char *, std::vector<int>>;

constexpr const char *kPattern = "ccOcOOccccOOOccccccc";

const std::vector<int> kUsual = {10, 10, 9, 9, 8, 7, 7, 7, 8, 8,
                                 7,  6,  5, 5, 5, 6, 6, 6, 7, 7};

const Trace kTraces[] = {
    {"torch", kUsual},
    {"apex", kUsual},
    {"fairseq", kUsual},
    {"opensequence", kUsual},
    {"tf", kUsual},
    {"keras3", kUsual},
    {"jmp", kUsual},
    {"flax", {10, 10, 9, 9, 8, 7, 7, 7, 7, 8, 7, 6, 5, 5, 5, 5, 6, 6, 6, 6}},
    {"deepspeed_fp16",
     {10, 10, 9, 9, 8, 7, 7, 7, 7, 8, 7, 6, 5, 5, 5, 5, 6, 6, 6, 7}},
    {"apex_hysteresis",
     {10, 10, 10, 10, 10, 9, 9, 9, 10, 10, 10, 9, 8, 8, 8, 9, 9, 9, 10, 10}},
    {"megatron",
     {10, 10, 10, 10, 9, 8, 8, 8, 9, 9, 9, 8, 7, 7, 7, 8, 8, 8, 9, 9}},
    {"deepspeed",
     {10, 10, 10, 10, 9, 8, 8, 8, 8, 9, 9, 8, 7, 7, 7, 7, 8, 8, 8, 9}},
    {"deepspeed_consecutive",
     {10, 10, 10, 10, 10, 9, 9, 9, 9, 10, 10, 9, 8, 8, 8, 8, 9, 9, 9, 10}},
    {"paddle",
     {10, 10, 10, 10, 10, 9, 9, 9, 10, 10, 10, 9, 9, 9, 9, 10, 10, 10, 11, 11}},
};

TEST(LossScaler, GoldenTraces) {
  for (const auto &[name, exponents] : kTraces) {
    ScalerRule rule = small(name);
    rule.maxScale = 0.0; // the traces start below every system's own bounds
    rule.minScale = 0.0;
    EXPECT_EQ(scalesAfter(rule, kPattern), powersOfTwo(exponents)) << name;
  }
}

TEST(LossScaler, EveryRuleHasAGoldenTraceAndSoundFigures) {
  auto [begin, end] = scalerRules();
  EXPECT_EQ(size_t(end - begin), std::size(kTraces));
  for (const ScalerRule *rule = begin; rule != end; ++rule) {
    EXPECT_EQ(whatIsWrong(*rule), "") << rule->name;
    EXPECT_EQ(findScalerRule(rule->name), rule);
  }
  EXPECT_EQ(findScalerRule("trch"), nullptr);
}

// Three systems call different rules "hysteresis". Case 24.
TEST(LossScaler, HysteresisDialects) {
  struct Row {
    const char *rule, *pattern;
    std::vector<float> scales;
  };
  const std::vector<float> still(8, 1024.0f);
  const std::vector<float> halving = {1024, 1024, 512, 512, 256, 256, 128, 128};
  const Row rows[] = {
      {"apex_hysteresis", "O.O.O.O.", still},
      {"deepspeed_consecutive", "O.O.O.O.", still},
      {"paddle", "O.O.O.O.", still},
      {"megatron", "O.O.O.O.", halving},
      {"deepspeed", "O.O.O.O.", halving},
      {"torch", "O.O.O.O.", {512, 512, 256, 256, 128, 128, 64, 64}},
      {"apex_hysteresis", "OO.OO", {1024, 512, 512, 512, 256}},
      {"megatron", "OO.OO", {1024, 512, 512, 256, 128}},
      {"deepspeed", "OO.OO", {1024, 512, 512, 256, 128}},
      {"deepspeed_consecutive", "OO.OO", {1024, 512, 512, 512, 256}},
      {"paddle", "OO.OO", {1024, 512, 512, 512, 256}},
      {"torch", "OO.OO", {512, 256, 256, 128, 64}},
      {"apex_hysteresis",
       "OOO...OOO",
       {1024, 512, 256, 256, 256, 512, 512, 256, 128}},
      {"megatron", "OOO...OOO", {1024, 512, 256, 256, 256, 512, 512, 256, 128}},
      {"deepspeed", "OOO...OOO", {1024, 512, 256, 256, 256, 256, 128, 64, 32}},
      {"deepspeed_consecutive",
       "OOO...OOO",
       {1024, 512, 256, 256, 256, 256, 256, 128, 64}},
      {"paddle", "OOO...OOO", {1024, 512, 512, 512, 512, 1024, 1024, 512, 512}},
      {"torch", "OOO...OOO", {512, 256, 128, 128, 128, 256, 128, 64, 32}},
      {"apex_hysteresis", "O...O", {1024, 1024, 1024, 2048, 2048}},
      {"megatron", "O...O", {1024, 1024, 1024, 2048, 2048}},
      {"deepspeed", "O...O", {1024, 1024, 1024, 1024, 512}},
      {"deepspeed_consecutive", "O...O", {1024, 1024, 1024, 1024, 1024}},
      {"paddle", "O...O", {1024, 1024, 1024, 2048, 2048}},
      {"torch", "O...O", {512, 512, 512, 1024, 512}},
  };
  for (const Row &row : rows)
    EXPECT_EQ(scalesAfter(small(row.rule), row.pattern), row.scales)
        << row.rule << " on " << row.pattern;
}

// Cases 1 and 2.
TEST(LossScaler, GrowthBoundary) {
  ScalerRule rule = small("torch");
  ScalerState state = initialState(rule);
  std::vector<int> trackers;
  std::vector<float> scales;
  for (char step : std::string_view("ccOccc")) {
    updateScale(rule, step == 'O' ? SawInf : 0, state);
    trackers.push_back(state.growthTracker);
    scales.push_back(state.scale);
  }
  EXPECT_EQ(trackers, (std::vector<int>{1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(scales, (std::vector<float>{1024, 1024, 512, 512, 512, 1024}));
  EXPECT_EQ(scalesAfter(rule, "ccc"), (std::vector<float>{1024, 1024, 2048}));
  for (const char *late : {"flax", "deepspeed"})
    EXPECT_EQ(scalesAfter(small(late), "cccc"),
              (std::vector<float>{1024, 1024, 1024, 2048}))
        << late;
}

// Case 3.
TEST(LossScaler, GrowthAtTheTop) {
  auto grown = [](std::string_view name) {
    ScalerRule rule = *findScalerRule(name);
    rule.growthInterval = 1;
    rule.maxScale = 0.0;
    rule.restart = rule.restartAfterGrowth = 0;
    ScalerState state = initialState(rule);
    state.scale = 0x1p127f;
    updateScale(rule, 0, state);
    EXPECT_EQ(state.growthTracker, 0);
    return bitsOf(state.scale);
  };
  EXPECT_EQ(grown("torch"), 0x7f000000u);
  EXPECT_EQ(grown("flax"), 0x7f7fffffu);
  EXPECT_EQ(grown("keras3"), 0x7f800000u);

  ScalerRule apex = *findScalerRule("apex");
  apex.growthInterval = 1;
  ScalerState state = initialState(apex);
  state.scale = 0x1p24f;
  updateScale(apex, 0, state);
  EXPECT_EQ(state.scale, 16777216.0f);
}

// Case 4: in double, rounded once.
TEST(LossScaler, BackoffRoundsOnce) {
  ScalerRule rule = *findScalerRule("torch");
  rule.backoffFactor = 0.3;
  rule.initScale = 3.0;
  ScalerState state = initialState(rule);
  updateScale(rule, SawInf, state);
  EXPECT_EQ(bitsOf(state.scale), 0x3f666666u);
}

// Case 5.
TEST(LossScaler, WithoutAFloorTheScaleReachesZero) {
  ScalerRule rule = *findScalerRule("torch");
  ScalerState state = initialState(rule);
  repeat(144, rule, SawNaN, state);
  EXPECT_EQ(state.scale, 0x1p-128f);
  EXPECT_TRUE(std::isinf(state.inverse()));
  repeat(22, rule, SawNaN, state);
  EXPECT_EQ(bitsOf(state.scale), 0u);
  updateScale(rule, 0, state);
  EXPECT_EQ(bitsOf(state.scale), 0u);
}

// Case 5.
TEST(LossScaler, FloorHoldsResetsOrFails) {
  ScalerRule rule = *findScalerRule("torch");
  rule.minScale = 1.0;
  ScalerState state = initialState(rule);
  repeat(16, rule, SawInf, state);
  EXPECT_EQ(state.scale, 1.0f);
  EXPECT_EQ(state.status, 0u);
  updateScale(rule, SawInf, state);
  EXPECT_EQ(state.scale, 1.0f);
  EXPECT_EQ(state.inverse(), 1.0f);
  EXPECT_EQ(state.status, uint32_t(ScalerState::HitFloor));

  rule.atFloor = AtFloor::Reset;
  updateScale(rule, SawInf, state);
  EXPECT_EQ(state.scale, 65536.0f);
  EXPECT_EQ(state.resets, 1u);

  rule.atFloor = AtFloor::Fail;
  rule.floorTolerance = 2;
  state = initialState(rule);
  state.scale = 1.0f;
  repeat(2, rule, SawInf, state);
  EXPECT_EQ(state.status & ScalerState::Failed, 0u);
  updateScale(rule, SawInf, state);
  EXPECT_NE(state.status & ScalerState::Failed, 0u);
  EXPECT_EQ(state.scale, 1.0f);
}

TEST(LossScaler, DeepSpeedFailsAtItsFloor) {
  ScalerRule rule = *findScalerRule("deepspeed_consecutive");
  rule.initScale = 2.0;
  ScalerState state = initialState(rule);
  repeat(2, rule, SawInf, state);
  EXPECT_EQ(state.scale, 1.0f);
  EXPECT_EQ(state.status & ScalerState::Failed, 0u);
  updateScale(rule, SawInf, state);
  EXPECT_NE(state.status & ScalerState::Failed, 0u);
}

// Case 7: any flag skips, once.
TEST(LossScaler, CountsInfAndNaNApart) {
  ScalerRule rule = small("torch");
  ScalerState state = initialState(rule);
  for (uint32_t flags :
       {uint32_t(SawInf), uint32_t(SawNaN), uint32_t(SawInf | SawNaN)})
    updateScale(rule, flags, state);
  EXPECT_EQ(state.scale, 128.0f);
  EXPECT_EQ(state.infSteps, 2u);
  EXPECT_EQ(state.nanSteps, 2u);
  EXPECT_EQ(state.skipped, 3u);
  EXPECT_EQ(state.skippedInARow, 3u);
  updateScale(rule, 0, state);
  EXPECT_EQ(state.applied, 1u);
  EXPECT_EQ(state.skippedInARow, 0u);
}

// Case 8.
TEST(LossScaler, InverseIsRoundedFromDouble) {
  ScalerState state;
  state.scale = 3.0f;
  EXPECT_EQ(bitsOf(5.0f * state.inverse()), 0x3fd55556u);
  EXPECT_EQ(bitsOf(7.0f * state.inverse()), 0x40155556u);
}

// Case 25.
TEST(LossScaler, LoweredIntervalGrowsWhereTheTestIsNotEquality) {
  for (auto [name, grows] :
       {std::pair("torch", false), std::pair("tf", true)}) {
    ScalerRule rule = *findScalerRule(name);
    rule.growthInterval = 3;
    ScalerState state = initialState(rule);
    state.growthTracker = 5;
    float before = state.scale;
    updateScale(rule, 0, state);
    EXPECT_EQ(state.scale != before, grows) << name;
    EXPECT_EQ(state.growthTracker, grows ? 0 : 6) << name;
  }
}

TEST(LossScaler, FiguresAreChecked) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  double inf = std::numeric_limits<double>::infinity();
  auto wrong = [](auto change) {
    ScalerRule rule = *findScalerRule("torch");
    change(rule);
    return !whatIsWrong(rule).empty();
  };
  for (double bad : {0.0, -1.0, nan, inf})
    EXPECT_TRUE(wrong([&](ScalerRule &r) { r.initScale = bad; })) << bad;
  for (double bad : {1.0, 0.5, nan, inf})
    EXPECT_TRUE(wrong([&](ScalerRule &r) { r.growthFactor = bad; })) << bad;
  for (double bad : {0.0, 1.0, -0.5, nan})
    EXPECT_TRUE(wrong([&](ScalerRule &r) { r.backoffFactor = bad; })) << bad;
  EXPECT_TRUE(wrong([](ScalerRule &r) { r.growthInterval = 0; }));
  EXPECT_TRUE(wrong([](ScalerRule &r) { r.minScale = 1e9; }));
  EXPECT_TRUE(wrong([](ScalerRule &r) { r.maxScale = 1.0; }));
  EXPECT_TRUE(wrong([](ScalerRule &r) { r.hysteresisSteps = 0; }));
}

} // namespace
