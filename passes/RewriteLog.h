//===- RewriteLog.h - the record of what a pass changed --------*- C++ -*-===//
//
// Every rewrite asks the log first and is refused once the function's rewrite
// limit is reached (that is how a bisection finds the one that moved a result).
// Each entry becomes a remark and a dictionary in the function's `mp.rewrites`:
//
//   {rule = "hoist-narrowing", contract = "strict", status = "applied",
//    node = 12 : i64, op = "mp.cast", module = "layers.0", why = "..."}
//
// A rule that adds a rounding also says which: `half`, and the `operand` of the
// operation if it is about one.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REWRITELOG_H
#define MP_PASSES_REWRITELOG_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::mp {

enum class Rule {
#define MP_RULE(ID, NAME, CONTRACT, TEXT) ID,
#include "passes/Rules.def"
};

/// Name, contract and text of a rule, as in Rules.def.
llvm::StringRef ruleName(Rule rule);
llvm::StringRef ruleContract(Rule rule);
llvm::StringRef ruleText(Rule rule);

class RewriteLog {
public:
  /// `pass` is the argument of the pass, the category of its remarks.
  RewriteLog(func::FuncOp func, llvm::StringRef pass);

  /// Records that `rule` is about to change `op`. False, and no record, when
  /// the rewrite limit is reached: then the caller must change nothing.
  /// The entry gets the attributes `more` as well.
  [[nodiscard]] bool apply(Rule rule, Operation *op, const llvm::Twine &why,
                           ArrayRef<NamedAttribute> more = {});

  /// Records once that `rule` could not be applied to `op`, and why.
  void miss(Rule rule, Operation *op, const llvm::Twine &why);

  /// Records something about the function as a whole that did not come about.
  void note(Rule rule, const llvm::Twine &why);

  /// Forgets what was missed so far: rewrites have changed the graph since.
  void forgetMisses();

  /// Number of rewrites applied through this log.
  int64_t numApplied() const { return applied; }

  /// Appends the record to the function. Call at the end of the pass.
  void commit();

private:
  struct Miss {
    Rule rule;
    Location loc;
    DictionaryAttr entry;
  };

  remark::RemarkOpts remarkOf(Rule rule) const;
  void record(Rule rule, Operation *op, const llvm::Twine &why, bool isApplied,
              ArrayRef<NamedAttribute> more = {});

  func::FuncOp func;
  llvm::StringRef pass;
  SmallVector<Attribute> entries;
  SmallVector<Miss> misses;
  llvm::DenseSet<std::pair<int, int64_t>> missed;
  int64_t applied = 0;
  int64_t budget;
};

} // namespace mlir::mp

#endif // MP_PASSES_REWRITELOG_H
