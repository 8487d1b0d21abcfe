//===- Decisions.cpp - what a policy says of each operation ---------------===//

#include "passes/Policy/Decisions.h"

using namespace mlir;
using namespace mlir::mp;

PolicyDecisions::PolicyDecisions(const Policy &policy, func::FuncOp func)
    : policy(policy), context(func.getContext()), matcher(policy),
      matchCounts(policy.rules.size()), decisionCounts(policy.rules.size()) {
  if (policy.enabled)
    groups.emplace(func);
}

static bool covers(PinWhere where, PinWhere part) {
  return where == PinWhere::both || where == part;
}

SmallVector<PolicyDecision, 2> PolicyDecisions::decide(ArrayRef<unsigned> rules,
                                                       bool isKept,
                                                       bool hasResult,
                                                       bool hasOperand) {
  constexpr int none = -2, group = -1;
  auto winner = [&](PinWhere part, bool exists) {
    if (!exists)
      return none;
    for (unsigned rule : llvm::reverse(rules))
      if (covers(policy.rules[rule].where, part))
        return int(rule);
    return isKept ? group : none;
  };
  int result = winner(PinWhere::result, hasResult);
  int operands = winner(PinWhere::operands, hasOperand);
  for (unsigned rule : rules) {
    ++matchCounts[rule];
    decisionCounts[rule] += result == int(rule) || operands == int(rule);
  }
  SmallVector<PolicyDecision, 2> decisions;
  auto add = [&](int rule, PinWhere where) {
    if (rule == none)
      return;
    PinFormat format =
        rule == group ? PinFormat::keep : policy.rules[rule].precision;
    decisions.push_back({format, where, rule});
  };
  if (result == operands) {
    add(result, PinWhere::both);
    return decisions;
  }
  add(result, PinWhere::result);
  add(operands, PinWhere::operands);
  return decisions;
}

SmallVector<PolicyDecision, 2> PolicyDecisions::of(Operation *op) {
  if (policyName(op).empty())
    return {};
  bool isKept =
      groups && !followsOperand(op) && !policy.isEnabled(groups->of(op));
  return decide(matcher.rulesFor(op), isKept, hasFloatResult(op),
                hasFloatOperand(op));
}

SmallVector<PolicyDecision, 1> PolicyDecisions::of(BlockArgument arg) {
  return SmallVector<PolicyDecision, 1>(decide(matcher.rulesFor(arg),
                                               /*isKept=*/false,
                                               /*hasResult=*/true,
                                               /*hasOperand=*/false));
}

PinAttr PolicyDecisions::makePin(const PolicyDecision &decision,
                                 Group group) const {
  if (decision.rule < 0)
    return PinAttr::get(
        context, decision.format, decision.where, kPolicyPinRule,
        "group '" + stringifyGroup(group) + "' is not enabled (" +
            policy.placeOf(policy.enabledPosition) + ")");
  const PolicyRule &rule = policy.rules[decision.rule];
  std::string place = policy.placeOf(rule.position);
  std::string reason =
      rule.why.empty()
          ? place + " asks for " + stringifyPinFormat(rule.precision).str()
          : rule.why + " (" + place + ")";
  return PinAttr::get(context, decision.format, decision.where, kPolicyPinRule,
                      reason);
}

PinAttr PolicyDecisions::pinOf(const PolicyDecision &decision, Operation *op) {
  Group group = decision.rule < 0 ? groups->of(op) : Group::Other;
  PinAttr &pin = pins[{decision.rule, decision.where, group}];
  if (!pin)
    pin = makePin(decision, group);
  return pin;
}
