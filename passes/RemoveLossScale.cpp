//===- RemoveLossScale.cpp - mp-remove-loss-scale -------------------------===//

#include "dialect/IR/MPOps.h"
#include "dialect/IR/ScaleRules.h"
#include "passes/Passes.h"
#include "passes/RewriteLog.h"
#include "passes/Update/LossScaleTypes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_REMOVELOSSSCALE
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
/// One product or quotient with a loss scale.
struct Scaling {
  Operation *op;
  unsigned factor; ///< the operand that is no loss scale
};

struct RemoveLossScale : mp::impl::RemoveLossScaleBase<RemoveLossScale> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    markLossScales(getOperation());
    RewriteLog log(getOperation(), getArgument());
    remove(getOperation(), log);
    log.commit();
  }

private:
  static void remove(func::FuncOp func, RewriteLog &log);
};

/// Decides whether all units of a function can become none.
class Removal {
public:
  Removal(func::FuncOp func, const LossScaleTypes &types)
      : func(func), types(types) {}

  /// Why not, and where; "" if they can.
  std::pair<StringRef, Operation *> whyNot();
  ArrayRef<Scaling> getScalings() const { return scalings; }

private:
  StringRef whyNotValue(Value value) const;
  StringRef whyNotOperation(Operation *op);

  func::FuncOp func;
  const LossScaleTypes &types;
  SmallVector<Scaling> scalings;
};
} // namespace

/// A value that carries the scale must have the range to do without.
StringRef Removal::whyNotValue(Value value) const {
  Unit unit = types.unitOf(value);
  if (unit.isNone() || types.isPureScale(value))
    return "";
  if (!types.isKnown(unit))
    return "its unit is not known";
  auto element = cast<FloatType>(getElementTypeOrSelf(value.getType()));
  // As many exponents as f32: nothing that fits scaled needs the scale.
  bool hasRange = element.isBF16() || element.isF32() || element.isF64();
  return hasRange ? "" : "a value of its type needs the loss scale";
}

StringRef Removal::whyNotOperation(Operation *op) {
  bool makesScale =
      op->getNumResults() == 1 && types.isPureScale(op->getResult(0));
  auto isPure = [&](Value value) { return types.isPureScale(value); };
  if (makesScale || llvm::none_of(op->getOperands(), isPure))
    return "";
  // What reads the scale without scaling anything: the operator that updates
  // it, and the function's end.
  if (isa<func::ReturnOp>(op) || scaleRuleOf(op) == ScaleRule::NewScale)
    return "";
  if (op->getNumResults() != 1 || op->getNumOperands() != 2 ||
      llvm::count_if(op->getOperands(), isPure) != 1)
    return "it reads the loss scale for something else";
  unsigned factor = isPure(op->getOperand(0)) ? 1 : 0;
  if (scaleRuleOf(op) != ScaleRule::Product &&
      scaleRuleOf(op) != ScaleRule::Quotient)
    return "it reads the loss scale for something else";
  if (cast<TensorType>(op->getOperand(factor).getType()).getShape() !=
      cast<TensorType>(op->getResult(0).getType()).getShape())
    return "it changes the shape as well";
  scalings.push_back({op, factor});
  return "";
}

std::pair<StringRef, Operation *> Removal::whyNot() {
  Block &body = func.getBody().front();
  for (BlockArgument argument : body.getArguments())
    if (StringRef why = whyNotValue(argument); !why.empty())
      return {"an argument carries the loss scale, or may", func};
  for (Operation &op : body) {
    for (Value result : op.getResults())
      if (StringRef why = whyNotValue(result); !why.empty())
        return {why, &op};
    if (StringRef why = whyNotOperation(&op); !why.empty())
      return {why, &op};
  }
  for (Value value : body.getTerminator()->getOperands())
    if (!types.unitOf(value).isNone() && !types.isPureScale(value))
      return {"a result is returned scaled", body.getTerminator()};
  return {"", nullptr};
}

void RemoveLossScale::remove(func::FuncOp func, RewriteLog &log) {
  LossScaleTypes types(func);
  if (!types.hasScale())
    return;
  if (!types.getConflicts().empty())
    return log.miss(Rule::RemoveLossScale, types.getConflicts().front().op,
                    "the loss scale is used wrongly: see mp-check-loss-scale");
  Removal removal(func, types);
  if (auto [why, op] = removal.whyNot(); op)
    return log.miss(Rule::RemoveLossScale, op, why);
  ArrayRef<Scaling> scalings = removal.getScalings();
  if (scalings.empty() ||
      // All or none: half of them would be a wrong program.
      !log.apply(Rule::RemoveLossScale, scalings.front().op,
                 Twine(scalings.size()) +
                     " products with a loss scale that no type needs"))
    return;
  for (const Scaling &scaling : scalings) {
    OpBuilder builder(scaling.op);
    Value value = scaling.op->getOperand(scaling.factor);
    Type element = getElementTypeOrSelf(scaling.op->getResult(0).getType());
    if (getElementTypeOrSelf(value.getType()) != element)
      value = CastOp::create(builder, scaling.op->getLoc(), value, element,
                             CastOrigin::promotion);
    scaling.op->getResult(0).replaceAllUsesWith(value);
    scaling.op->erase();
  }
}
