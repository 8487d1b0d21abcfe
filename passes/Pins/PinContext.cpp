//===- PinContext.cpp - what detectors share ------------------------------===//

#include "passes/Pins/PinContext.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::mp;

PinContext::PinContext(func::FuncOp func, const HalfFormat &half,
                       const MeasuredValues *measured)
    : func(func), half(half), measured(measured), intervals(func) {
  for (Operation &op : operations()) {
    byRole[static_cast<size_t>(pinRoleOf(&op))].push_back(&op);
    byKind[static_cast<size_t>(opKindOf(&op))].push_back(&op);
  }
}

static bool hasPinnable(ValueRange values, ArrayRef<int64_t> indices) {
  if (indices.empty())
    return llvm::any_of(values.getTypes(), isPinnable);
  return llvm::any_of(indices, [&](int64_t i) {
    return i < int64_t(values.size()) && isPinnable(values[i].getType());
  });
}

/// Without the part in which no float is.
static std::optional<PinWhere> partWithFloats(Operation *op, PinWhere where,
                                              ArrayRef<int64_t> indices) {
  bool results =
      where != PinWhere::operands &&
      hasPinnable(op->getResults(),
                  where == PinWhere::result ? indices : ArrayRef<int64_t>());
  bool operands =
      where != PinWhere::result &&
      hasPinnable(op->getOperands(),
                  where == PinWhere::operands ? indices : ArrayRef<int64_t>());
  if (results && operands)
    return PinWhere::both;
  if (results)
    return PinWhere::result;
  return operands ? std::optional(PinWhere::operands) : std::nullopt;
}

/// "aten.exp of 8x512".
static std::string describe(Operation *op, PinWhere where,
                            ArrayRef<int64_t> indices) {
  StringRef callee = stripOverload(frameworkCallee(op));
  ValueRange values = where == PinWhere::operands
                          ? ValueRange(op->getOperands())
                          : op->getResults();
  size_t i = indices.empty() ? 0 : indices.front();
  std::string text =
      (callee.empty() ? op->getName().getStringRef() : callee).str();
  return i < values.size() ? text + " of " + operandText(values[i].getType())
                           : text;
}

static bool isPinnedAlready(Operation *op, StringRef rule, PinWhere where,
                            ArrayRef<int64_t> indices) {
  return llvm::any_of(pinsOf(op), [&](PinAttr pin) {
    return pin.getRule() == rule && pin.getIndices() == indices &&
           (pin.getWhere() == where || pin.getWhere() == PinWhere::both);
  });
}

void PinContext::add(Operation *op, PinFormat format, PinRule rule,
                     PinWhere where, const Twine &why,
                     ArrayRef<int64_t> indices) {
  StringRef name = pinRuleName(rule);
  if (isPinnedAlready(op, name, where, indices))
    return;
  std::string reason = describe(op, where, indices) + ": " + why.str();
  if (!addPin(op, PinAttr::get(op->getContext(), format, where, name, reason,
                               indices)))
    return;
  remark::analysis(op->getLoc(),
                   remark::RemarkOpts::name(name).category("mp-pin"))
      << reason;
}

void PinContext::pin(Operation *op, PinRule rule, PinWhere where,
                     const Twine &why, ArrayRef<int64_t> indices) {
  if (!guards(rule, half))
    return;
  if (std::optional<PinWhere> part = partWithFloats(op, where, indices))
    add(op, PinFormat::fp32, rule, *part, why, indices);
}

void PinContext::pinResult(Value value, PinRule rule, const Twine &why) {
  Value made = origin(value);
  auto result = dyn_cast<OpResult>(made);
  if (!result)
    return;
  Operation *op = result.getOwner();
  if (op->getNumResults() == 1)
    return pin(op, rule, PinWhere::result, why);
  pin(op, rule, PinWhere::result, why, {int64_t(result.getResultNumber())});
}

void PinContext::keep(Operation *op, PinRule rule, const Twine &why) {
  if (guards(rule, half))
    add(op, PinFormat::keep, rule, PinWhere::both, why, {});
}

std::string mlir::mp::stepText(const HalfFormat &half, double magnitude) {
  return half.name.str() + " steps by " + numberText(half.stepAt(magnitude)) +
         " at " + numberText(magnitude);
}
