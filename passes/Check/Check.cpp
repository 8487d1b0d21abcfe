//===- Check.cpp - prove that a rewrite kept its contract -----------------===//

#include "passes/Check/Check.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/ListOperators.h"
#include "dialect/IR/Regions.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/Check/AddedRoundings.h"
#include "passes/Check/Obligations.h"
#include "passes/Check/Widened.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

namespace {
/// Compares one function with itself after rewriting.
class FunctionCheck {
public:
  FunctionCheck(func::FuncOp before, func::FuncOp after)
      : before(before), after(after) {}

  LogicalResult run();
  const AddedRoundings &getAdded() const { return added; }

private:
  /// Where two terms part.
  struct Difference {
    TermId before, after;
    std::optional<TermId> reader; ///< the operator that reads both
  };

  LogicalResult compare(const NormalForm &traced, Merged merged,
                        bool &isAmbiguous);
  LogicalResult checkCovered(func::FuncOp func);
  LogicalResult checkSignature();
  LogicalResult checkEffects(const NormalForm &a, const NormalForm &b);
  LogicalResult checkOutputs(const NormalForm &a, const NormalForm &b);
  LogicalResult reportDifference(const Twine &what, TermId a, TermId b);
  Difference locateDifference(TermId a, TermId b) const;
  FloatType roundingOf(TermId term, TermId source) const;
  std::string explain(const Difference &difference) const;
  std::string describe(TermId id) const;
  Location locationOf(TermId id, func::FuncOp func) const;

  func::FuncOp before, after;
  AddedRoundings added;
  TermTable table;
  /// Differences that were reported for an earlier output.
  llvm::DenseSet<std::pair<TermId, TermId>> reported;
};
} // namespace

LogicalResult FunctionCheck::checkCovered(func::FuncOp func) {
  if (!func.getBody().hasOneBlock())
    return func.emitError("has several blocks, which the check does not cover");
  for (Operation &op : func.getBody().front())
    if (op.getNumRegions())
      return op.emitError("has a region, which the check does not cover");
  return success();
}

/// Attributes of the arguments. That one is a loss scale, or is pinned, says
/// nothing new.
static SmallVector<DictionaryAttr> argumentAttrs(func::FuncOp func) {
  SmallVector<DictionaryAttr> all;
  for (unsigned i = 0, end = func.getNumArguments(); i != end; ++i) {
    NamedAttrList attrs(func.getArgAttrDict(i));
    attrs.erase(MPDialect::kLossScaleAttrName);
    attrs.erase(MPDialect::kPinAttrName);
    all.push_back(attrs.getDictionary(func.getContext()));
  }
  return all;
}

LogicalResult FunctionCheck::checkSignature() {
  auto differ = [&](const Twine &what) {
    InFlightDiagnostic diag = before.emitError(what) << " differ";
    diag.attachNote(after.getLoc()) << "after";
    return diag;
  };
  if (before.getFunctionType() != after.getFunctionType())
    return differ("types of @" + before.getName())
           << ": " << before.getFunctionType() << " and "
           << after.getFunctionType();
  if (argumentAttrs(before) != argumentAttrs(after))
    return differ("argument attributes of @" + before.getName());
  if (before.getResAttrsAttr() != after.getResAttrsAttr())
    return differ("result attributes of @" + before.getName());
  return success();
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

std::string FunctionCheck::describe(TermId id) const {
  const Term &term = table[id];
  std::string text;
  llvm::raw_string_ostream os(text);
  if (term.kind == TermKind::Input)
    os << "argument " << term.index;
  else if (term.kind == TermKind::Apply)
    os << cast<StringAttr>(term.name).getValue();
  else
    os << (term.kind == TermKind::Convert ? "conversion of "
                                          : "unrounded conversion of ")
       << table.elementType(term.args[0]);
  os << " in " << table.elementType(id);
  return text;
}

Location FunctionCheck::locationOf(TermId id, func::FuncOp func) const {
  return table[id].op ? table[id].op->getLoc() : func.getLoc();
}

/// Follows the first differing argument as long as both sides are the same
/// operator: there lies the cause.
FunctionCheck::Difference FunctionCheck::locateDifference(TermId a,
                                                          TermId b) const {
  Difference found{a, b, std::nullopt};
  while (true) {
    const Term &x = table[found.before], &y = table[found.after];
    if (x.kind != y.kind || x.type != y.type || x.name != y.name ||
        x.attrs != y.attrs || x.index != y.index || x.serial != y.serial ||
        x.args.size() != y.args.size() || x.results != y.results)
      return found;
    auto differs = [](auto pair) {
      return std::get<0>(pair) != std::get<1>(pair);
    };
    auto args = llvm::zip(x.args, y.args);
    auto first = llvm::find_if(args, differs);
    if (first == args.end())
      return found;
    if (x.kind == TermKind::Apply)
      found.reader = found.before;
    std::tie(found.before, found.after) = *first;
  }
}

/// The half type that `term` was rounded to, if it is `source` rounded.
FloatType FunctionCheck::roundingOf(TermId term, TermId source) const {
  const Term &widened = table[term];
  if (widened.kind != TermKind::Convert ||
      table.elementType(term) != table.elementType(source))
    return {};
  const Term &narrowed = table[widened.args[0]];
  auto half = dyn_cast<FloatType>(table.elementType(widened.args[0]));
  return half && isHalf(half) && narrowed.kind == TermKind::Convert &&
                 narrowed.args[0] == source
             ? half
             : FloatType();
}

/// What differs, in words.
std::string FunctionCheck::explain(const Difference &difference) const {
  auto [x, y, reader] = difference;
  std::string text;
  llvm::raw_string_ostream os(text);
  FloatType added = roundingOf(y, x), missing = roundingOf(x, y);
  if (!added && !missing) {
    os << describe(x) << " before";
    return text;
  }
  if (reader)
    os << describe(*reader) << " reads ";
  os << describe(added ? x : y);
  if (added)
    os << " rounded to " << added << ", which no record says";
  else
    os << " without the rounding to " << missing << " that a record names";
  return text;
}

LogicalResult FunctionCheck::reportDifference(const Twine &what, TermId a,
                                              TermId b) {
  Difference found = locateDifference(a, b);
  if (!reported.insert({found.before, found.after}).second)
    return failure();
  bool isRounding = roundingOf(found.after, found.before) ||
                    roundingOf(found.before, found.after);
  TermId place =
      isRounding ? found.reader.value_or(found.before) : found.before;
  InFlightDiagnostic diag = emitError(locationOf(place, before))
                            << what << " of @" << before.getName()
                            << " differs: " << explain(found);
  diag.attachNote(locationOf(found.after, after))
      << describe(found.after) << " after";
  return diag;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

LogicalResult FunctionCheck::checkEffects(const NormalForm &a,
                                          const NormalForm &b) {
  for (size_t i = 0; i < std::max(a.effects.size(), b.effects.size()); ++i) {
    Operation *x = i < a.effects.size() ? a.effects[i] : nullptr;
    Operation *y = i < b.effects.size() ? b.effects[i] : nullptr;
    if (!x || !y || signatureOf(x) != signatureOf(y) ||
        x->getResultTypes() != y->getResultTypes() ||
        a.effectOperands[i].size() != b.effectOperands[i].size()) {
      InFlightDiagnostic diag =
          (x ? x->emitError() : before.emitError())
          << "effect " << i << " of @" << before.getName()
          << " differs: " << (x ? signatureOf(x).first : Attribute())
          << " before";
      diag.attachNote(y ? y->getLoc() : after.getLoc())
          << (y ? signatureOf(y).first : Attribute()) << " after";
      return diag; // what follows would only repeat it
    }
    for (auto [p, q] : llvm::zip(a.effectOperands[i], b.effectOperands[i]))
      if (p != q)
        return reportDifference("operand of effect " + Twine(i), p, q);
  }
  return success();
}

LogicalResult FunctionCheck::checkOutputs(const NormalForm &a,
                                          const NormalForm &b) {
  LogicalResult result = success();
  auto outputs = [](func::FuncOp func) {
    return func.getBody().front().getTerminator()->getOperands();
  };
  for (auto [i, pair] :
       llvm::enumerate(llvm::zip(outputs(before), outputs(after)))) {
    TermId x = a.terms.lookup(std::get<0>(pair));
    TermId y = b.terms.lookup(std::get<1>(pair));
    if (x != y)
      result = reportDifference("output " + Twine(i), x, y);
  }
  return result;
}

LogicalResult FunctionCheck::run() {
  if (failed(checkSignature()))
    return failure();
  if (before.isExternal() || after.isExternal())
    return success(before.isExternal() == after.isExternal());
  if (failed(checkCovered(before)) || failed(checkCovered(after)))
    return failure();

  auto sizeOf = [](func::FuncOp func) {
    return func.getBody().front().getOperations().size();
  };
  table.allow(10 * (sizeOf(before) + sizeOf(after)));
  NormalForm traced = normalForm(before, table, Allowances());
  bool isAmbiguous = false;
  std::vector<Diagnostic> errors;
  auto holdsUnder = [&](Merged merged, std::vector<Diagnostic> *kept) {
    ScopedDiagnosticHandler keep(before.getContext(), [&](Diagnostic &error) {
      if (kept)
        kept->push_back(std::move(error));
      return success();
    });
    return succeeded(compare(traced, merged, isAmbiguous));
  };
  if (holdsUnder(Merged::WithDropped, &errors))
    return success();
  reported.clear();
  if (isAmbiguous && holdsUnder(Merged::WithKept, nullptr))
    return success();
  // The first reading is the likely one.
  for (Diagnostic &error : errors)
    before.getContext()->getDiagEngine().emit(std::move(error));
  return failure();
}

/// Compares both sides under one reading of the record. `isAmbiguous` tells
/// whether there is another one. Each reading is legal by itself, so one that
/// holds is enough.
LogicalResult FunctionCheck::compare(const NormalForm &traced, Merged merged,
                                     bool &isAmbiguous) {
  FailureOr<SmallVector<Record>> records = newRecords(before, after);
  if (failed(records))
    return failure();
  Allowances allowed;
  LogicalResult result = success();
  if (failed(claimAddedRoundings(before, after, *records, allowed)))
    result = failure();
  if (failed(verifyWidened(before, after, *records, allowed)))
    result = failure();
  if (failed(verifyRecord(before, after, *records, traced, table, merged,
                          allowed)))
    result = failure();
  if (failed(verifyAddedRoundings(before, after, allowed, added)))
    result = failure();
  isAmbiguous = allowed.isAmbiguous;
  Allowances ofAfter;
  std::swap(ofAfter.halfMatmuls, allowed.halfMatmuls);
  NormalForm source = normalForm(before, table, allowed);
  NormalForm rewritten = normalForm(after, table, ofAfter);
  if (table.isExhausted())
    return before.emitError(
        "has too many roundings in one chain to be compared");
  if (failed(checkEffects(source, rewritten)) ||
      failed(checkOutputs(source, rewritten)))
    return failure();
  return result;
}

/// Operations of a module beside its functions must not change.
static LogicalResult checkOthers(ModuleOp before, ModuleOp after) {
  auto others = [](ModuleOp module) {
    SmallVector<Operation *> ops;
    for (Operation &op : *module.getBody())
      if (!isa<func::FuncOp>(op))
        ops.push_back(&op);
    return ops;
  };
  SmallVector<Operation *> a = others(before), b = others(after);
  if (a.size() != b.size())
    return before.emitError("has ")
           << a.size() << " operations beside functions before and " << b.size()
           << " after";
  for (auto [x, y] : llvm::zip(a, b))
    if (!OperationEquivalence::isEquivalentTo(
            x, y, OperationEquivalence::IgnoreLocations)) {
      InFlightDiagnostic diag = x->emitError("changed");
      diag.attachNote(y->getLoc()) << "after";
      return diag;
    }
  return success();
}

/// Puts the definitions of operators over lists and the bodies of regions in
/// their places: the comparison is about what they do.
static void unfold(func::FuncOp func) {
  for (Operation &op : llvm::make_early_inc_range(func.getOps())) {
    if (isa<ScaledUpdateOp, RegionOp>(op)) {
      inlineBody(&op);
      continue;
    }
    auto aten = dyn_cast<AtenOp>(op);
    if (aten && isListOperator(aten) && whyNotExpandable(aten).empty())
      replaceByLoop(aten, derivedLocation(aten.getLoc()));
  }
}

static bool isFolded(Operation *op) {
  auto aten = dyn_cast<AtenOp>(op);
  return isa<ScaledUpdateOp, RegionOp>(op) || (aten && isListOperator(aten));
}

/// `module`, or a copy without such operations if it has any.
static ModuleOp unfolded(ModuleOp module, OwningOpRef<ModuleOp> &copy) {
  bool hasAny = module
                    .walk([](Operation *op) {
                      return isFolded(op) ? WalkResult::interrupt()
                                          : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (!hasAny)
    return module;
  copy = module.clone();
  for (auto func : copy->getOps<func::FuncOp>())
    unfold(func);
  return *copy;
}

static LogicalResult checkUnfolded(ModuleOp before, ModuleOp after,
                                   SmallVectorImpl<AddedRoundings> *added) {
  LogicalResult result = checkOthers(before, after);
  for (auto func : before.getOps<func::FuncOp>()) {
    auto rewritten = after.lookupSymbol<func::FuncOp>(func.getName());
    if (!rewritten) {
      result = func.emitError("is missing after");
      continue;
    }
    FunctionCheck check(func, rewritten);
    if (failed(check.run()))
      result = failure();
    if (added && (check.getAdded().reads || check.getAdded().calls))
      added->push_back(check.getAdded());
  }
  for (auto func : after.getOps<func::FuncOp>())
    if (!before.lookupSymbol<func::FuncOp>(func.getName()))
      result = func.emitError("is missing before");
  return result;
}

LogicalResult mlir::mp::checkRewrites(ModuleOp before, ModuleOp after,
                                      SmallVectorImpl<AddedRoundings> *added) {
  OwningOpRef<ModuleOp> copyBefore, copyAfter;
  return checkUnfolded(unfolded(before, copyBefore), unfolded(after, copyAfter),
                       added);
}
