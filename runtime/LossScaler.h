//===- LossScaler.h - the loss scale as a state machine --------*- C++ -*-===//
//
// Mainstream loss scalers are one machine of two variables, the scale and a
// count of clean steps. They differ in a few rules, which are data here: a row
// of `Rules.def` each. Factors are applied in double and rounded once to f32.
//
// A step is clean when no gradient is inf or NaN; every other step is skipped.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_LOSSSCALER_H
#define RUNTIME_LOSSSCALER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mpopt {

/// When a clean step grows the scale; T counts clean steps, N is the interval.
enum class GrowthTest : uint8_t {
  Equal,    ///< T + 1 == N; N lowered below T stops growth until an overflow
  AtLeast,  ///< T + 1 >= N
  Multiple, ///< (T + 1) % N == 0
};

/// What becomes of a scale that would grow beyond the largest f32.
enum class Ceiling : uint8_t {
  Keep,     ///< the scale stays as it was
  Clamp,    ///< the largest f32
  Infinity, ///< inf, as in the system of that name
};

/// What a backoff does that would go below the least scale.
enum class AtFloor : uint8_t {
  Hold,  ///< stay at the least scale
  Reset, ///< start again from the initial scale, and count it
  Fail,  ///< keep the scale and set `ScalerState::Failed`
};

/// Which overflows lower the scale. Three systems call different rules
/// "hysteresis"; the pattern O.O.O.O. tells them apart.
enum class Hysteresis : uint8_t {
  None,           ///< each
  Consecutive,    ///< the h-th in a row, and each that follows it
  EveryH,         ///< the h-th in a row, then the next h-th
  PerGrowthPeriod ///< the h-th since the scale last grew, and all that follow
};

/// The rules of one system. All figures can be set apart from the rest.
struct ScalerRule {
  std::string_view name;
  double initScale = 65536.0;
  double growthFactor = 2.0;
  double backoffFactor = 0.5;
  int32_t growthInterval = 2000;
  GrowthTest test = GrowthTest::Equal;
  /// T after an overflow and at the start; -1 grows one clean step later.
  int32_t restart = 0;
  /// T after the scale has grown.
  int32_t restartAfterGrowth = 0;
  Ceiling ceiling = Ceiling::Keep;
  double maxScale = 0.0; ///< 0: none
  double minScale = 0.0; ///< 0: none, so that the scale can reach 0
  AtFloor atFloor = AtFloor::Hold;
  /// `AtFloor::Fail`: how many backoffs in a row at the floor are forgiven.
  int32_t floorTolerance = 0;
  Hysteresis hysteresis = Hysteresis::None;
  int32_t hysteresisSteps = 1; ///< h
};

/// The row of `Rules.def` with that name; null if there is none.
const ScalerRule *findScalerRule(std::string_view name);

/// All rows, in the order of `Rules.def`.
struct ScalerRules {
  const ScalerRule *begin, *end;
};
ScalerRules scalerRules();

/// What is wrong with the figures of `rule`; empty if nothing is.
std::string whatIsWrong(const ScalerRule &rule);

/// What a gradient held that no update may see.
enum NonFinite : uint32_t { SawInf = 1, SawNaN = 2 };

/// All state of a scaler: one cache line, where the gradients are.
struct alignas(64) ScalerState {
  enum Status : uint32_t {
    HitFloor = 1, ///< the last backoff met the floor
    Failed = 2,   ///< `AtFloor::Fail`, and the tolerance is used up
  };

  float scale = 1.0f;
  int32_t growthTracker = 0; ///< T
  int32_t hysteresisLeft = 1;
  uint32_t flags = 0; ///< of the last step: bits of `NonFinite`
  uint32_t status = 0;
  int32_t floorHits = 0; ///< backoffs in a row that met the floor
  uint32_t resets = 0;   ///< `AtFloor::Reset`
  uint32_t skippedInARow = 0;
  uint64_t applied = 0;
  uint64_t skipped = 0;
  uint32_t infSteps = 0; ///< steps that saw an inf
  uint32_t nanSteps = 0; ///< steps that saw a NaN

  /// The multiplier that takes the scale out: fl32(1 / scale).
  float inverse() const;
};
static_assert(sizeof(ScalerState) == 64, "one cache line");

/// The state at the start of training.
ScalerState initialState(const ScalerRule &rule);

/// The state after a step whose gradients had `flags` (bits of `NonFinite`).
void updateScale(const ScalerRule &rule, uint32_t flags, ScalerState &state);

} // namespace mpopt

#endif // RUNTIME_LOSSSCALER_H
