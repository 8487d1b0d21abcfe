//===- CheckLossScale.cpp - mp-check-loss-scale ---------------------------===//

#include "dialect/IR/MPOps.h"
#include "passes/Passes.h"
#include "passes/Update/LossScaleTypes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_CHECKLOSSSCALE
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct CheckLossScale : mp::impl::CheckLossScaleBase<CheckLossScale> {
  using CheckLossScaleBase::CheckLossScaleBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    markLossScales(getOperation());
    LossScaleTypes types(getOperation());
    for (const ScaleConflict &conflict : types.getConflicts())
      report(conflict, types);
    if (!types.getConflicts().empty() && !warnOnly)
      signalPassFailure();
  }

private:
  void report(const ScaleConflict &conflict, const LossScaleTypes &types) {
    InFlightDiagnostic diagnostic =
        warnOnly ? conflict.op->emitWarning() : conflict.op->emitError();
    diagnostic << messageOf(conflict, types);
    noteScalings(diagnostic, conflict.value, types);
    if (conflict.other)
      noteScalings(diagnostic, conflict.other, types);
  }

  static std::string messageOf(const ScaleConflict &conflict,
                               const LossScaleTypes &types);
  static void noteScalings(InFlightDiagnostic &diagnostic, Value value,
                           const LossScaleTypes &types);
};
} // namespace

/// "the loss scale arg3", or both.
static std::string scalesIn(const Unit &unit, const LossScaleTypes &types) {
  std::string text;
  for (const Unit::Power &power : unit.powers)
    text += (text.empty() ? "" : " and ") +
            describeScale(types.originOf(power.first));
  return text;
}

static bool isPositive(const Fraction &number) {
  return number > Fraction(0, 1);
}

/// What is wrong with a value of this unit where a plain number is needed.
static std::string faultOf(const Unit &unit, const LossScaleTypes &types) {
  if (unit.powers.size() > 1)
    return "is not unscaled by the loss scale that it was multiplied with: " +
           scalesIn(unit, types);
  const Fraction &exponent = unit.powers.front().second;
  if (!isPositive(exponent))
    return "is unscaled more often than scaled, by the loss scale " +
           scalesIn(unit, types);
  if (exponent == Fraction(1, 1))
    return "is still multiplied by the loss scale " + scalesIn(unit, types);
  return "is still multiplied by a power of the loss scale " +
         scalesIn(unit, types);
}

std::string CheckLossScale::messageOf(const ScaleConflict &conflict,
                                      const LossScaleTypes &types) {
  const Unit &unit = conflict.unit, &other = conflict.otherUnit;
  if (conflict.isLiteral)
    return "a value " + faultOf(unit, types) +
           " where it meets a constant: unscale before clipping";
  if (!types.isKnown(unit) || !types.isKnown(other))
    return "values under different powers of the loss scale meet";
  if (other.isNone())
    return "a value " + faultOf(unit, types);
  if (unit.isNone())
    return "a value " + faultOf(other, types);
  if (unit.powers.front().first != other.powers.front().first)
    return "values under two loss scales meet, " + scalesIn(unit, types) +
           " and " + scalesIn(other, types);
  return "values under different powers of the loss scale " +
         scalesIn(unit, types) + " meet";
}

void CheckLossScale::noteScalings(InFlightDiagnostic &diagnostic, Value value,
                                  const LossScaleTypes &types) {
  // The last ones say most; a chain of many would hide them.
  constexpr size_t kMost = 3;
  SmallVector<Operation *> scalings = types.scalingsOf(value);
  for (Operation *op : ArrayRef(scalings).take_front(kMost)) {
    auto isScaled = [&](Value operand) { return !types.isPureScale(operand); };
    Value before = *llvm::find_if(op->getOperands(), isScaled);
    Unit change = multiply(types.unitOf(op->getResult(0)), types.unitOf(before),
                           Fraction(-1, 1));
    bool divides =
        !change.isNone() && !isPositive(change.powers.front().second);
    diagnostic.attachNote(op->getLoc())
        << (divides ? "unscaled here" : "scaled here");
  }
}
