//===- ApplyPolicy.cpp - mp-apply-policy ----------------------------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Passes.h"
#include "passes/Policy/Decisions.h"
#include "passes/Policy/FunctionPolicy.h"
#include "passes/RewriteLog.h"

namespace mlir::mp {
#define GEN_PASS_DEF_APPLYPOLICY
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// `pins` without those of a policy; null for none.
static ArrayAttr withoutPolicy(ArrayRef<PinAttr> pins) {
  SmallVector<Attribute> left;
  for (PinAttr pin : pins)
    if (pin.getRule().getValue() != kPolicyPinRule)
      left.push_back(pin);
  return left.empty() ? ArrayAttr()
                      : ArrayAttr::get(pins.front().getContext(), left);
}

/// What an earlier run of the pass left, which another policy may not want.
static void removeOldPins(func::FuncOp func) {
  StringRef name = MPDialect::kPinAttrName;
  func.getBody().walk([&](Operation *op) {
    SmallVector<PinAttr, 1> pins = pinsOf(op);
    if (pins.empty())
      return;
    if (ArrayAttr left = withoutPolicy(pins))
      op->setDiscardableAttr(name, left);
    else
      op->removeDiscardableAttr(name);
  });
  for (BlockArgument arg : func.getArguments()) {
    SmallVector<PinAttr, 1> pins = pinsOf(arg);
    if (pins.empty())
      continue;
    if (ArrayAttr left = withoutPolicy(pins))
      func.setArgAttr(arg.getArgNumber(), name, left);
    else
      func.removeArgAttr(arg.getArgNumber(), name);
  }
}

namespace {
struct ApplyPolicy : mp::impl::ApplyPolicyBase<ApplyPolicy> {
  using ApplyPolicyBase::ApplyPolicyBase;

  /// A file is read once, not once for each function.
  LogicalResult initialize(MLIRContext *context) override {
    policyOfFile = nullptr;
    if (file.empty())
      return success();
    llvm::Expected<Policy> policy = loadPolicy(file);
    if (!policy)
      return emitError(UnknownLoc::get(context), toString(policy.takeError()));
    policyOfFile = std::make_shared<const Policy>(std::move(*policy));
    return success();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (policyOfFile)
      return apply(*policyOfFile, func);
    llvm::Expected<std::optional<Policy>> policy = policyOf(func);
    if (!policy) {
      func.emitError(toString(policy.takeError()));
      return signalPassFailure();
    }
    if (*policy)
      apply(**policy, func);
  }

  void apply(const Policy &policy, func::FuncOp func);
  void reportUnmatched(const Policy &policy, ArrayRef<int64_t> matched,
                       func::FuncOp func);

  std::shared_ptr<const Policy> policyOfFile;
};
} // namespace

void ApplyPolicy::apply(const Policy &policy, func::FuncOp func) {
  removeOldPins(func);
  setPolicy(func, policy);
  // First, so that groups know the kinds of the user's operators.
  setOpRows(func, policy);
  PolicyDecisions decisions(policy, func);
  func.getBody().walk([&](Operation *op) {
    for (const PolicyDecision &decision : decisions.of(op))
      addPin(op, decisions.pinOf(decision, op));
  });
  for (BlockArgument arg : func.getArguments())
    for (const PolicyDecision &decision : decisions.of(arg))
      addPin(arg, decisions.pinOf(decision, /*op=*/nullptr));
  reportUnmatched(policy, decisions.matched(), func);
}

static bool matchesAny(const ModuleGlob &module, func::FuncOp func) {
  return llvm::any_of(func.getBody().front(), [&](Operation &op) {
    return module.match(modulePathOf(op.getLoc()));
  });
}

/// A rule that matches nothing is more often a mistake than meant.
void ApplyPolicy::reportUnmatched(const Policy &policy,
                                  ArrayRef<int64_t> matched,
                                  func::FuncOp func) {
  RewriteLog log(func, getArgument());
  std::optional<Unmatched> unmatched;
  for (const PolicyBudget &budget : policy.budgets) {
    if (matchesAny(budget.module, func))
      continue;
    if (!unmatched)
      unmatched.emplace(func);
    PolicyRule rule;
    rule.module = budget.module;
    std::string text = policy.placeOf(budget.position) +
                       ": the budget matches nothing in @" +
                       func.getName().str() + ": " + unmatched->why(rule);
    func.emitWarning(text);
    log.note(Rule::UnmatchedPolicyRule, text);
  }
  for (auto [rule, count] : llvm::zip(policy.rules, matched)) {
    if (count != 0)
      continue;
    if (!unmatched)
      unmatched.emplace(func);
    std::string text = policy.placeOf(rule.position) +
                       ": the rule matches nothing in @" +
                       func.getName().str() + ": " + unmatched->why(rule);
    func.emitWarning(text);
    log.note(Rule::UnmatchedPolicyRule, text);
  }
  log.commit();
}
