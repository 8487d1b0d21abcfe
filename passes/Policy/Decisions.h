//===- Decisions.h - what a policy says of each operation ------*- C++ -*-===//

#ifndef MP_PASSES_POLICY_DECISIONS_H
#define MP_PASSES_POLICY_DECISIONS_H

#include "dialect/IR/Pins.h"
#include "passes/Policy/Groups.h"
#include "passes/Policy/Matcher.h"

#include <map>
#include <tuple>

namespace mlir::mp {

/// The rule id of the pins that a policy sets.
inline constexpr llvm::StringLiteral kPolicyPinRule = "policy";

/// What decides about one part of an operation.
struct PolicyDecision {
  PinFormat format = PinFormat::keep;
  PinWhere where = PinWhere::both;
  int rule = -1; ///< number of the rule; -1 for a group that is not enabled
};

/// Tries the rules of a policy on the operations of one function. The last rule
/// that matches decides, about result and operands apart; any rule wins over a
/// group that is not enabled.
class PolicyDecisions {
public:
  PolicyDecisions(const Policy &policy, func::FuncOp func);

  SmallVector<PolicyDecision, 2> of(Operation *op);
  SmallVector<PolicyDecision, 1> of(BlockArgument arg);

  /// The pin of a decision; `op` is null for an argument.
  PinAttr pinOf(const PolicyDecision &decision, Operation *op);

  /// How many operations and arguments each rule matched, and of how many it
  /// decides something.
  ArrayRef<int64_t> matched() const { return matchCounts; }
  ArrayRef<int64_t> decided() const { return decisionCounts; }

private:
  SmallVector<PolicyDecision, 2> decide(ArrayRef<unsigned> rules, bool isKept,
                                        bool hasResult, bool hasOperand);

  PinAttr makePin(const PolicyDecision &decision, Group group) const;

  const Policy &policy;
  MLIRContext *context;
  PolicyMatcher matcher;
  std::optional<GroupMap> groups; ///< only if some group is not enabled
  /// By rule, part and group: an operation alone has no pin of its own.
  std::map<std::tuple<int, PinWhere, Group>, PinAttr> pins;
  std::vector<int64_t> matchCounts, decisionCounts;
};

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_DECISIONS_H
