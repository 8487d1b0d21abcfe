//===- LossScaler.cpp - the loss scale as a state machine -----------------===//

#include "runtime/LossScaler.h"

#include <cmath>
#include <limits>

using namespace mpopt;

static constexpr ScalerRule kRules[] = {
#define MP_SCALER(NAME, INIT, MAX, MIN, INTERVAL, TEST, RESTART, AFTER_GROWTH, \
                  CEILING, FLOOR, HYSTERESIS, STEPS)                           \
  {#NAME,                                                                      \
   INIT,                                                                       \
   2.0,                                                                        \
   0.5,                                                                        \
   INTERVAL,                                                                   \
   GrowthTest::TEST,                                                           \
   RESTART,                                                                    \
   AFTER_GROWTH,                                                               \
   Ceiling::CEILING,                                                           \
   MAX,                                                                        \
   MIN,                                                                        \
   AtFloor::FLOOR,                                                             \
   0,                                                                          \
   Hysteresis::HYSTERESIS,                                                     \
   STEPS},
#include "runtime/ScalerRules.def"
};

ScalerRules mpopt::scalerRules() {
  return {std::begin(kRules), std::end(kRules)};
}

const ScalerRule *mpopt::findScalerRule(std::string_view name) {
  for (const ScalerRule &rule : kRules)
    if (rule.name == name)
      return &rule;
  return nullptr;
}

static constexpr double kMaxF32 = std::numeric_limits<float>::max();

std::string mpopt::whatIsWrong(const ScalerRule &rule) {
  // Written so that a NaN is wrong, too.
  if (!(rule.initScale > 0.0 && rule.initScale <= kMaxF32))
    return "the initial scale must be a positive finite number";
  if (!(rule.growthFactor > 1.0 && rule.growthFactor <= kMaxF32))
    return "the growth factor must be greater than 1";
  if (!(rule.backoffFactor > 0.0 && rule.backoffFactor < 1.0))
    return "the backoff factor must be between 0 and 1";
  if (rule.growthInterval < 1)
    return "the growth interval must be at least 1";
  if (!(rule.minScale >= 0.0 && rule.minScale <= rule.initScale))
    return "the least scale must not be negative or above the initial scale";
  if (!(rule.maxScale == 0.0 || rule.maxScale >= rule.initScale))
    return "the largest scale must not be below the initial scale";
  if (rule.hysteresisSteps < 1)
    return "hysteresis must be at least 1";
  if (rule.floorTolerance < 0)
    return "the tolerance at the floor must not be negative";
  return {};
}

float ScalerState::inverse() const { return float(1.0 / double(scale)); }

ScalerState mpopt::initialState(const ScalerRule &rule) {
  ScalerState state;
  state.scale = float(rule.initScale);
  state.growthTracker = rule.restart;
  state.hysteresisLeft = rule.hysteresisSteps;
  return state;
}

/// An f32 of `value` that may be beyond the largest one.
static float rounded(double value) {
  return value > kMaxF32 ? std::numeric_limits<float>::infinity()
                         : float(value);
}

static void grow(const ScalerRule &rule, ScalerState &state) {
  float grown = rounded(double(state.scale) * rule.growthFactor);
  if (rule.maxScale != 0.0 && !(grown <= rule.maxScale))
    grown = float(rule.maxScale);
  if (!std::isfinite(grown)) {
    if (rule.ceiling == Ceiling::Keep)
      grown = state.scale;
    else if (rule.ceiling == Ceiling::Clamp)
      grown = float(kMaxF32);
  }
  state.scale = grown;
}

static void backOff(const ScalerRule &rule, ScalerState &state) {
  float lowered = float(double(state.scale) * rule.backoffFactor);
  state.status &= ~uint32_t(ScalerState::HitFloor);
  if (!(lowered < rule.minScale)) {
    state.floorHits = 0;
    state.scale = lowered;
    return;
  }
  state.status |= ScalerState::HitFloor;
  ++state.floorHits;
  switch (rule.atFloor) {
  case AtFloor::Hold:
    state.scale = float(rule.minScale);
    return;
  case AtFloor::Reset:
    state.scale = float(rule.initScale);
    ++state.resets;
    return;
  case AtFloor::Fail:
    if (state.floorHits > rule.floorTolerance)
      state.status |= ScalerState::Failed;
    return;
  }
}

/// Whether this overflow lowers the scale; counts it.
static bool isLowering(const ScalerRule &rule, ScalerState &state) {
  if (rule.hysteresis == Hysteresis::None)
    return true;
  if (state.hysteresisLeft > 0)
    --state.hysteresisLeft;
  if (state.hysteresisLeft > 0)
    return false;
  if (rule.hysteresis == Hysteresis::EveryH)
    state.hysteresisLeft = rule.hysteresisSteps;
  return true;
}

static void overflow(const ScalerRule &rule, ScalerState &state) {
  state.growthTracker = rule.restart;
  if (isLowering(rule, state))
    backOff(rule, state);
}

static bool isGrowthDue(const ScalerRule &rule, int32_t cleanSteps) {
  switch (rule.test) {
  case GrowthTest::Equal:
    return cleanSteps == rule.growthInterval;
  case GrowthTest::AtLeast:
    return cleanSteps >= rule.growthInterval;
  case GrowthTest::Multiple:
    return cleanSteps > 0 && cleanSteps % rule.growthInterval == 0;
  }
  return false;
}

static void cleanStep(const ScalerRule &rule, ScalerState &state) {
  state.floorHits = 0;
  bool isRefilled = rule.hysteresis == Hysteresis::Consecutive ||
                    rule.hysteresis == Hysteresis::EveryH;
  if (isRefilled)
    state.hysteresisLeft = rule.hysteresisSteps;
  int32_t cleanSteps = state.growthTracker + 1;
  if (!isGrowthDue(rule, cleanSteps)) {
    state.growthTracker = cleanSteps;
    return;
  }
  state.growthTracker = rule.restartAfterGrowth;
  state.hysteresisLeft = rule.hysteresisSteps;
  grow(rule, state);
}

void mpopt::updateScale(const ScalerRule &rule, uint32_t flags,
                        ScalerState &state) {
  state.flags = flags;
  if (flags == 0) {
    ++state.applied;
    state.skippedInARow = 0;
    cleanStep(rule, state);
    return;
  }
  ++state.skipped;
  ++state.skippedInARow;
  state.infSteps += (flags & SawInf) != 0;
  state.nanSteps += (flags & SawNaN) != 0;
  overflow(rule, state);
}
