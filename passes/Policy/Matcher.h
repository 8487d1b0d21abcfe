//===- Matcher.h - which rules of a policy an operation meets --*- C++ -*-===//
//
// Selectors that depend only on module path and operator are tried once for
// each distinct pair of the two. All selectors of a rule must match.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_POLICY_MATCHER_H
#define MP_PASSES_POLICY_MATCHER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Policy/Policy.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::mp {

/// What a policy calls the operator of `op`: "aten.mm.default", "mp.cast";
/// empty for what no rule is about.
llvm::StringRef policyName(Operation *op);

/// True if an operand, or a result, is a tensor of floats.
bool hasFloatOperand(Operation *op);
bool hasFloatResult(Operation *op);

/// True for a conversion or a view: it follows what it converts.
bool followsOperand(Operation *op);

class PolicyMatcher {
public:
  explicit PolicyMatcher(const Policy &policy) : policy(policy) {}

  /// Numbers of the rules that match, in order. A rule that does not name an
  /// operator is about operations that compute: conversions and views follow
  /// what they convert.
  SmallVector<unsigned, 4> rulesFor(Operation *op);

  /// The same for an argument of a function, which only `name` and `dtype` can
  /// select.
  SmallVector<unsigned, 4> rulesFor(BlockArgument arg);

private:
  ArrayRef<unsigned> candidates(StringRef path, StringRef callee, bool follows);
  bool matchesNames(const PolicyRule &rule, StringRef path, StringRef callee,
                    bool follows) const;

  const Policy &policy;
  /// By the addresses of path and callee, which MLIR keeps unique.
  llvm::DenseMap<std::pair<const void *, const void *>,
                 SmallVector<unsigned, 2>>
      cache;
};

/// Says why rules match nothing in a function.
class Unmatched {
public:
  /// Collects the names in `func`, once for all rules.
  explicit Unmatched(func::FuncOp func);

  /// The selector of `rule` that fails, and the nearest name there.
  std::string why(const PolicyRule &rule) const;

private:
  std::string whyNoModule(const ModuleGlob &glob) const;
  std::string whyNoLine(const PolicyRule &rule) const;

  llvm::SetVector<StringRef> paths, operators, files;
  llvm::SetVector<Location> places;
};

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_MATCHER_H
