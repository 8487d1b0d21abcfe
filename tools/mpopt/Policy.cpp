//===- Policy.cpp - mpopt policy ------------------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/Import/Load.h"
#include "passes/Policy/Decisions.h"
#include "passes/Policy/FunctionPolicy.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

/// What the passes would see when they apply a policy.
static Expected<OwningOpRef<ModuleOp>>
loadRaised(Session &session, StringRef path, StringRef model) {
  Expected<OwningOpRef<ModuleOp>> module = session.load(path, model);
  if (!module)
    return module.takeError();
  if (Error error = session.run(**module, "func.func(mp-normalize,mp-raise)"))
    return error;
  return module;
}

/// "layers.*.mlp" of "layers.3.mlp": what differs between layers is open.
static std::string openPath(StringRef path) {
  SmallVector<StringRef> segments;
  path.split(segments, '.');
  for (StringRef &segment : segments)
    if (int64_t number; !segment.getAsInteger(10, number))
      segment = "*";
  return llvm::join(segments, ".");
}

/// "1 rule", "2 rules".
static std::string counted(int64_t count, StringRef what) {
  return (llvm::Twine(count) + " " + what + (count == 1 ? "" : "s")).str();
}

/// `text` as it may stand in a comment.
static std::string oneLine(StringRef text) {
  std::string line;
  for (char letter : text)
    line += (llvm::isPrint(letter) || (letter & 0x80)) ? letter : '?';
  return line;
}

//===----------------------------------------------------------------------===//
// mpopt policy init
//===----------------------------------------------------------------------===//

namespace {
struct PathCount {
  llvm::SetVector<StringRef> modules;
  int64_t operations = 0;
};

/// What a start of a policy can name.
struct Inventory {
  llvm::MapVector<Group, int64_t> groups;
  llvm::MapVector<Group, llvm::SetVector<StringRef>> operators;
  std::map<std::string, PathCount> paths;
  std::map<std::string, int64_t> unknown;

  void add(func::FuncOp func);
};
} // namespace

void Inventory::add(func::FuncOp func) {
  GroupMap map(func);
  func.walk([&](Operation *op) {
    StringRef name = policyName(op);
    if (name.empty() || followsOperand(op) ||
        (!hasFloatOperand(op) && !hasFloatResult(op)))
      return;
    Group group = map.of(op);
    ++groups[group];
    operators[group].insert(stripOverload(name));
    StringRef path = modulePathOf(op->getLoc());
    if (!path.empty()) {
      PathCount &count = paths[openPath(path)];
      count.modules.insert(path);
      ++count.operations;
    }
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    if (precision && precision.getOpKind() == OpKind::Unknown)
      ++unknown[stripOverload(name).str()];
  });
}

static void printGroups(const Inventory &inventory, llvm::raw_ostream &os) {
  os << "\n# Groups: only those enabled may change; leave this table out for "
        "all of them.\n"
        "# In this graph (operations that compute):\n";
  for (auto [i, name] : llvm::enumerate(groupNames())) {
    auto group = static_cast<Group>(i);
    auto count = inventory.groups.find(group);
    os << llvm::formatv("#   {0,-10} {1,6}  {2}\n", name,
                        count == inventory.groups.end() ? 0 : count->second,
                        groupHelp(group));
  }
  os << "# [groups]\n# enable = [\"ffn\"]  # then \"attention\", then "
        "\"residual\"\n";
}

static void printPaths(const Inventory &inventory, llvm::raw_ostream &os) {
  os << "\n# Rules: all selectors of a rule must match; the last matching rule "
        "decides.\n# Modules in this graph:\n";
  for (const auto &[path, count] : inventory.paths)
    os << llvm::formatv("#   {0,-48} {1}, {2}\n", oneLine(path),
                        counted(count.modules.size(), "module"),
                        counted(count.operations, "operation"));
  std::string example =
      inventory.paths.empty() ? "**" : oneLine(inventory.paths.begin()->first);
  os << "# [[rule]]\n# module = \"" << example
     << "\"      # `*`: one segment, `**`: any number\n"
        "# op = \"aten.mm\"              # with or without overload\n"
        "# line = \"model.py:100-140\"   # where it was traced\n"
        "# dtype = \"bf16\"              # of the traced result\n"
        "# name = \"mlp/aten\\\\.mm\"      # regular expression over "
        "module/operator\n"
        "# precision = \"fp32\"          # fp32, half or keep\n"
        "# where = \"result\"            # result, operands or both\n"
        "# why = \"a reason\"            # shown in every report\n";
}

static void printUnknown(const Inventory &inventory, llvm::raw_ostream &os) {
  if (inventory.unknown.empty())
    return;
  os << "\n# Operators that mpopt knows nothing of. Say what they compute, if "
        "they take\n# any float type:\n";
  for (const auto &[name, count] : inventory.unknown)
    os << "#   " << oneLine(name) << " (" << count << ")\n";
  os << "# [[op]]\n# name = \"" << oneLine(inventory.unknown.begin()->first)
     << "\"\n# kind = \"pointwise\"\n";
}

static int runInit(const Arguments &arguments) {
  Session session;
  StringRef input = arguments.inputs[1];
  auto module = loadRaised(session, input, arguments.get("--model", ""));
  if (!module)
    return reportError(module.takeError());
  Inventory inventory;
  (*module)->walk([&](func::FuncOp func) { inventory.add(func); });
  auto print = [&](llvm::raw_ostream &os) {
    os << "# Precision policy, started from "
       << oneLine(llvm::sys::path::filename(input))
       << ". passes/docs/Policy.md has all keys.\n"
          "# Check it with: mpopt policy check FILE "
       << oneLine(llvm::sys::path::filename(input))
       << "\nversion = 1\n# level = \"precise\"   # strict, precise or "
          "relaxed\n"
          "# epsilon = 0.10      # what relaxed may add to the gradient's "
          "error\n";
    printGroups(inventory, os);
    printPaths(inventory, os);
    printUnknown(inventory, os);
  };
  Error error = writeOutput(arguments.get("-o", "-"), print);
  return error ? reportError(std::move(error)) : Ok;
}

//===----------------------------------------------------------------------===//
// mpopt policy check
//===----------------------------------------------------------------------===//

namespace {
/// What one rule matched, over all functions.
struct RuleMatches {
  int64_t matched = 0, decided = 0;
  std::map<std::pair<std::string, std::string>, int64_t> operations;
  std::string why; ///< why it matches nothing
};
} // namespace

static void collectMatches(const Policy &policy, func::FuncOp func,
                           std::vector<RuleMatches> &rules) {
  PolicyDecisions decisions(policy, func);
  PolicyMatcher matcher(policy);
  auto count = [&](ArrayRef<unsigned> matching, StringRef path,
                   StringRef name) {
    for (unsigned rule : matching)
      ++rules[rule].operations[{openPath(path), name.str()}];
  };
  func.getBody().walk([&](Operation *op) {
    decisions.of(op);
    count(matcher.rulesFor(op), modulePathOf(op->getLoc()), policyName(op));
  });
  for (BlockArgument arg : func.getArguments()) {
    decisions.of(arg);
    count(matcher.rulesFor(arg), "", "argument");
  }
  Unmatched unmatched(func);
  for (auto [i, rule] : llvm::enumerate(rules)) {
    rule.matched += decisions.matched()[i];
    rule.decided += decisions.decided()[i];
    if (rule.matched == 0)
      rule.why = unmatched.why(policy.rules[i]);
  }
}

static void printSummary(const Policy &policy, llvm::raw_ostream &os) {
  os << policy.name << ": " << counted(policy.rules.size(), "rule") << ", "
     << counted(policy.ops.size(), "operator") << ", ";
  if (policy.level)
    os << "level " << *policy.level << ", ";
  if (policy.epsilon)
    os << llvm::format("epsilon %g, ", *policy.epsilon);
  if (policy.enabled) {
    os << "groups ";
    llvm::interleave(
        *policy.enabled, os, [&](Group group) { os << stringifyGroup(group); },
        " ");
    os << ", ";
  }
  os << "sha256 " << policy.digest() << '\n';
}

static void printRule(const Policy &policy, const PolicyRule &rule,
                      const RuleMatches &matches, llvm::raw_ostream &os) {
  os << '\n'
     << policy.placeOf(rule.position) << ": "
     << stringifyPinFormat(rule.precision) << ' '
     << stringifyPinWhere(rule.where);
  if (matches.matched == 0) {
    os << ", matches nothing: " << matches.why << '\n';
    return;
  }
  os << ", matches " << matches.matched << ", decides " << matches.decided
     << '\n';
  for (const auto &[place, count] : matches.operations)
    os << llvm::formatv("  {0,6} x {1,-32} {2}\n", count, place.second,
                        place.first.empty() ? "(model)" : place.first);
}

static int runPolicyCheck(const Arguments &arguments) {
  Expected<Policy> policy = loadPolicy(arguments.inputs[1]);
  if (!policy)
    return reportError(policy.takeError());
  printSummary(*policy, llvm::outs());
  if (arguments.inputs.size() == 2)
    return Ok;
  Session session;
  auto module =
      loadRaised(session, arguments.inputs[2], arguments.get("--model", ""));
  if (!module)
    return reportError(module.takeError());
  std::vector<RuleMatches> rules(policy->rules.size());
  (*module)->walk([&](func::FuncOp func) {
    setOpRows(func, *policy);
    collectMatches(*policy, func, rules);
  });
  bool allMatch = true;
  for (auto [rule, matches] : llvm::zip(policy->rules, rules)) {
    printRule(*policy, rule, matches, llvm::outs());
    allMatch &= matches.matched != 0;
  }
  return allMatch ? Ok : Different;
}

int mlir::mp::runPolicy(const Arguments &arguments) {
  StringRef verb = arguments.inputs[0];
  if (verb == "init" && arguments.inputs.size() == 2)
    return runInit(arguments);
  if (verb == "check")
    return runPolicyCheck(arguments);
  if (verb == "init")
    return reportError("'mpopt policy init' needs one INPUT");
  return reportError("'mpopt policy' has no verb '" + verb + "'" +
                     suggest(verb, {"init", "check"}) +
                     " ('mpopt policy --help' has both)");
}
