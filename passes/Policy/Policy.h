//===- Policy.h - what a user asks of precision ----------------*- C++ -*-===//
//
// A policy file (TOML) as checked data. Policy.md has the schema. Reading ends
// in one error that names file, line, column, key and the nearest known word.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_POLICY_POLICY_H
#define MP_PASSES_POLICY_POLICY_H

#include "dialect/IR/MPOps.h"
#include "passes/Policy/Globs.h"
#include "llvm/Support/Regex.h"

namespace mlir::mp {

/// Parts of a model that are switched on one after the other.
enum class Group {
#define MP_GROUP(ID, NAME, HELP) ID,
#include "passes/Policy/Groups.def"
};

llvm::StringRef stringifyGroup(Group group);
llvm::StringRef groupHelp(Group group);

/// The names of all groups, in the order of the enumeration.
llvm::ArrayRef<llvm::StringRef> groupNames();

/// One `[[rule]]`. Selectors that were not given match everything.
struct PolicyRule {
  std::optional<ModuleGlob> module;
  std::optional<OperatorGlob> op;
  std::shared_ptr<const llvm::Regex> name; ///< over "module.path/operator"
  std::string nameText;
  std::string file; ///< end of a source path; empty for any
  unsigned firstLine = 0, lastLine = 0;
  std::string dtype; ///< "f32"; empty for any
  PinFormat precision = PinFormat::keep;
  PinWhere where = PinWhere::both;
  std::string why;
  unsigned position = 0; ///< its line in the policy
};

/// One `[[op]]`: the kind of an operator that the table has no row for.
struct PolicyOpRow {
  std::string name;
  OpKind kind;
};

/// One `[[budget]]`: by how much roundings of a module may grow errors.
struct PolicyBudget {
  ModuleGlob module;
  double epsilon;
  unsigned position = 0; ///< its line in the policy
};

struct Policy {
  std::string name; ///< file name, for messages
  std::string text;
  std::optional<std::string> level; ///< "strict", "precise", "relaxed"
  std::optional<double> epsilon;
  std::vector<PolicyRule> rules;
  std::optional<std::vector<Group>> enabled; ///< none: all groups
  unsigned enabledPosition = 0;
  std::vector<PolicyOpRow> ops;
  std::vector<PolicyBudget> budgets;

  /// SHA-256 of the text.
  std::string digest() const;

  /// "policy.toml:12", for a reason.
  std::string placeOf(unsigned line) const;

  bool isEnabled(Group group) const;
};

/// Reads `text`; `name` stands in messages.
llvm::Expected<Policy> parsePolicy(llvm::StringRef text, llvm::StringRef name);

/// Reads a file.
llvm::Expected<Policy> loadPolicy(llvm::StringRef path);

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_POLICY_H
