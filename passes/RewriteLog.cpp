//===- RewriteLog.cpp - the record of what a pass changed -----------------===//

#include "passes/RewriteLog.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

#include <limits>

using namespace mlir;
using namespace mlir::mp;

namespace {
struct RuleRow {
  StringRef name, contract, text;
};
} // namespace

static const RuleRow &row(Rule rule) {
  static const RuleRow rows[] = {
#define MP_RULE(ID, NAME, CONTRACT, TEXT) {NAME, CONTRACT, TEXT},
#include "passes/Rules.def"
  };
  return rows[static_cast<int>(rule)];
}

StringRef mlir::mp::ruleName(Rule rule) { return row(rule).name; }
StringRef mlir::mp::ruleContract(Rule rule) { return row(rule).contract; }
StringRef mlir::mp::ruleText(Rule rule) { return row(rule).text; }

static ArrayRef<Attribute> existingRecord(func::FuncOp func) {
  auto record = func->getAttrOfType<ArrayAttr>(MPDialect::kRewritesAttrName);
  return record ? record.getValue() : ArrayRef<Attribute>();
}

/// Rewrites that earlier passes applied count against the same limit.
static int64_t appliedBefore(func::FuncOp func) {
  return llvm::count_if(existingRecord(func), [](Attribute attr) {
    auto entry = cast<DictionaryAttr>(attr);
    auto status = entry.getAs<StringAttr>("status");
    return status && status.getValue() == "applied";
  });
}

RewriteLog::RewriteLog(func::FuncOp func, StringRef pass)
    : func(func), pass(pass), budget(std::numeric_limits<int64_t>::max()) {
  if (auto limit =
          func->getAttrOfType<IntegerAttr>(MPDialect::kRewriteLimitAttrName))
    budget = std::max<int64_t>(limit.getInt() - appliedBefore(func), 0);
}

remark::RemarkOpts RewriteLog::remarkOf(Rule rule) const {
  return remark::RemarkOpts::name(ruleName(rule)).category(pass);
}

bool RewriteLog::apply(Rule rule, Operation *op, const Twine &why,
                       ArrayRef<NamedAttribute> more) {
  if (applied == budget)
    return false;
  ++applied;
  record(rule, op, why, /*isApplied=*/true, more);
  return true;
}

void RewriteLog::miss(Rule rule, Operation *op, const Twine &why) {
  // Ops without a node number, of a hand-written file, are told by location.
  int64_t stem = stemOf(op->getLoc());
  auto place = reinterpret_cast<intptr_t>(op->getLoc().getAsOpaquePointer());
  int64_t key = stem >= 0 ? stem : ~int64_t(place);
  if (missed.insert({static_cast<int>(rule), key}).second)
    record(rule, op, why, /*isApplied=*/false);
}

void RewriteLog::note(Rule rule, const Twine &why) {
  record(rule, func, why, /*isApplied=*/false);
}

void RewriteLog::record(Rule rule, Operation *op, const Twine &why,
                        bool isApplied, ArrayRef<NamedAttribute> more) {
  std::string text = why.str();
  Location loc = op->getLoc();
  if (isApplied)
    remark::passed(loc, remarkOf(rule)) << text;

  Builder b(func.getContext());
  NamedAttrList entry;
  entry.append("contract", b.getStringAttr(ruleContract(rule)));
  entry.append("module", b.getStringAttr(modulePathOf(loc)));
  entry.append("node", b.getI64IntegerAttr(stemOf(loc)));
  entry.append("op", b.getStringAttr(op->getName().getStringRef()));
  entry.append("rule", b.getStringAttr(ruleName(rule)));
  entry.append("status", b.getStringAttr(isApplied ? "applied" : "missed"));
  entry.append("why", b.getStringAttr(text));
  entry.append(more);
  DictionaryAttr dict = entry.getDictionary(func.getContext());
  if (isApplied)
    entries.push_back(dict);
  else
    misses.push_back({rule, loc, dict});
}

void RewriteLog::forgetMisses() {
  misses.clear();
  missed.clear();
}

void RewriteLog::commit() {
  if (entries.empty() && misses.empty())
    return;
  // What was applied is kept one by one, however alike: the rewrite limit
  // counts these entries.
  SmallVector<Attribute> all(existingRecord(func));
  llvm::append_range(all, entries);
  // Running a pass again on its own result finds the same things to say.
  llvm::DenseSet<Attribute> known(all.begin(), all.end());
  for (const Miss &miss : misses) {
    remark::missed(miss.loc, remarkOf(miss.rule))
        << miss.entry.getAs<StringAttr>("why").getValue();
    if (known.insert(miss.entry).second)
      all.push_back(miss.entry);
  }
  entries.clear();
  misses.clear();
  func->setAttr(MPDialect::kRewritesAttrName,
                ArrayAttr::get(func.getContext(), all));
}
