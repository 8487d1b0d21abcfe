//===- ScalerStep.cpp - the loss scaler's step as ops ---------------------===//
//
// Both a clean step and an overflow are computed; the flags select. What the
// rule says is known here, so that only its own arithmetic is left.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Update/ScalerStep.h"
#include "codegen/CUDA/Rows/Values.h"
#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Update/Numbers.h"
#include <limits>

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mpopt;

static constexpr double kMaxF32 = std::numeric_limits<float>::max();

namespace {
/// The fields of ScalerState.
struct State {
  Value scale;
  Value growthTracker, hysteresisLeft, flags, status, floorHits, resets,
      skippedInARow;
  Value applied, skipped;
  Value infSteps, nanSteps;
};

class Stepper {
public:
  Stepper(ImplicitLocOpBuilder &b, const ScalerRule &rule)
      : b(b), n(b), rule(rule) {}

  /// Runs `visit(field, offset, type)` for each field.
  template <typename Visit>
  void forEachField(State &state, Visit visit);
  State clean(State s);
  State overflow(State s, Value flags);

private:
  Value number(int64_t value) { return constantOf32(b, value); }
  Value real(double value);
  Value times(Value scale, double factor);
  Value grown(Value scale);
  Value isDue(Value cleanSteps);
  Value isLowering(State &s);
  void backOff(State &s, Value isLowered);

  ImplicitLocOpBuilder &b;
  Numbers n;
  const ScalerRule &rule;
};
} // namespace

template <typename Visit>
void Stepper::forEachField(State &s, Visit visit) {
  Type word = b.getI32Type(), wide = b.getI64Type();
#define FIELD(NAME, TYPE)                                                      \
  visit(s.NAME, int64_t(offsetof(ScalerState, NAME)), TYPE)
  FIELD(scale, b.getF32Type());
  FIELD(growthTracker, word);
  FIELD(hysteresisLeft, word);
  FIELD(flags, word);
  FIELD(status, word);
  FIELD(floorHits, word);
  FIELD(resets, word);
  FIELD(skippedInARow, word);
  FIELD(applied, wide);
  FIELD(skipped, wide);
  FIELD(infSteps, word);
  FIELD(nanSteps, word);
#undef FIELD
}

Value Stepper::real(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value)));
}

/// `scale * factor` in double, which may be beyond the largest f32.
Value Stepper::times(Value scale, double factor) {
  Value wide = n.widen(b.getF64Type(), scale);
  Value product = n.mul(wide, n.real(factor, wide));
  Value isBeyond = n.isGreater(product, n.real(kMaxF32, product));
  return n.select(isBeyond, real(std::numeric_limits<float>::infinity()),
                  n.narrow(b.getF32Type(), product));
}

Value Stepper::grown(Value scale) {
  Value value = times(scale, rule.growthFactor);
  auto isWithin = [&](Value x, double limit) -> Value {
    Value wide = n.widen(b.getF64Type(), x);
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, wide,
                                 n.real(limit, wide));
  };
  if (rule.maxScale != 0.0)
    value =
        n.select(isWithin(value, rule.maxScale), value, real(rule.maxScale));
  Value isFinite = isWithin(callIntrinsic(b, "llvm.fabs", value), kMaxF32);
  if (rule.ceiling == Ceiling::Keep)
    return n.select(isFinite, value, scale);
  if (rule.ceiling == Ceiling::Clamp)
    return n.select(isFinite, value, real(kMaxF32));
  return value;
}

Value Stepper::isDue(Value cleanSteps) {
  Value interval = number(rule.growthInterval);
  auto compare = [&](arith::CmpIPredicate kind, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, kind, x, y);
  };
  switch (rule.test) {
  case GrowthTest::Equal:
    return compare(arith::CmpIPredicate::eq, cleanSteps, interval);
  case GrowthTest::AtLeast:
    return compare(arith::CmpIPredicate::sge, cleanSteps, interval);
  case GrowthTest::Multiple: {
    Value rest = arith::RemSIOp::create(b, cleanSteps, interval);
    return n.both(compare(arith::CmpIPredicate::sgt, cleanSteps, number(0)),
                  n.isEqual(rest, 0));
  }
  }
  llvm_unreachable("all tests are handled");
}

State Stepper::clean(State s) {
  s.flags = number(0);
  s.applied = n.plus(s.applied, 1);
  s.skippedInARow = number(0);
  s.floorHits = number(0);
  Value full = number(rule.hysteresisSteps);
  if (rule.hysteresis == Hysteresis::Consecutive ||
      rule.hysteresis == Hysteresis::EveryH)
    s.hysteresisLeft = full;
  Value cleanSteps = n.plus(s.growthTracker, 1);
  Value due = isDue(cleanSteps);
  s.growthTracker = n.select(due, number(rule.restartAfterGrowth), cleanSteps);
  s.hysteresisLeft = n.select(due, full, s.hysteresisLeft);
  s.scale = n.select(due, grown(s.scale), s.scale);
  return s;
}

/// Whether this overflow lowers the scale; counts it.
Value Stepper::isLowering(State &s) {
  if (rule.hysteresis == Hysteresis::None)
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value none = number(0);
  auto isLeft = [&]() -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, s.hysteresisLeft,
                                 none);
  };
  s.hysteresisLeft =
      n.select(isLeft(), n.minus(s.hysteresisLeft, 1), s.hysteresisLeft);
  Value more = isLeft();
  Value lowers = n.differ(more, n.integer(1, more));
  if (rule.hysteresis == Hysteresis::EveryH)
    s.hysteresisLeft =
        n.select(lowers, number(rule.hysteresisSteps), s.hysteresisLeft);
  return lowers;
}

/// What backOff of LossScaler.cpp does, where `isLowered`.
void Stepper::backOff(State &s, Value isLowered) {
  Value lowered = times(s.scale, rule.backoffFactor);
  Value wide = n.widen(b.getF64Type(), lowered);
  Value isBelow = n.isLess(wide, n.real(rule.minScale, wide));
  Value met = n.both(isLowered, isBelow);
  Value free = n.both(isLowered, n.differ(isBelow, n.integer(1, isBelow)));
  Value hits = n.plus(s.floorHits, 1);
  Value status = n.both(s.status, ~uint64_t(ScalerState::HitFloor));
  Value hitStatus = n.either(status, uint64_t(ScalerState::HitFloor));
  Value atFloor = s.scale;
  if (rule.atFloor == AtFloor::Hold)
    atFloor = real(rule.minScale);
  if (rule.atFloor == AtFloor::Reset) {
    atFloor = real(rule.initScale);
    s.resets = n.select(met, n.plus(s.resets, 1), s.resets);
  }
  if (rule.atFloor == AtFloor::Fail) {
    Value isOver = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, hits,
                                         number(rule.floorTolerance));
    hitStatus = n.select(
        isOver, n.either(hitStatus, uint64_t(ScalerState::Failed)), hitStatus);
  }
  s.status = n.select(met, hitStatus, n.select(free, status, s.status));
  s.floorHits = n.select(met, hits, n.select(free, number(0), s.floorHits));
  s.scale = n.select(met, atFloor, n.select(free, lowered, s.scale));
}

State Stepper::overflow(State s, Value flags) {
  s.flags = flags;
  s.skipped = n.plus(s.skipped, 1);
  s.skippedInARow = n.plus(s.skippedInARow, 1);
  s.infSteps = n.plus(s.infSteps, n.both(flags, uint64_t(SawInf)));
  s.nanSteps = n.plus(s.nanSteps, n.down(n.both(flags, uint64_t(SawNaN)), 1));
  s.growthTracker = number(rule.restart);
  Value lowers = isLowering(s);
  backOff(s, lowers);
  return s;
}

void mlir::mp::cuda::emitScalerStep(ImplicitLocOpBuilder &b,
                                    const ScalerRule &rule, Value state,
                                    Value flags) {
  Stepper stepper(b, rule);
  Numbers n(b);
  State before;
  stepper.forEachField(before, [&](Value &field, int64_t offset, Type type) {
    field = loadField(b, state, Value(), 0, offset, type);
  });
  State clean = stepper.clean(before);
  State other = stepper.overflow(before, flags);
  Value isClean = n.isEqual(flags, 0);
  SmallVector<Value> skipped;
  stepper.forEachField(
      other, [&](Value &field, int64_t, Type) { skipped.push_back(field); });
  unsigned i = 0;
  stepper.forEachField(clean, [&](Value &field, int64_t offset, Type) {
    storeField(b, n.select(isClean, field, skipped[i++]), state, Value(), 0,
               offset);
  });
}
