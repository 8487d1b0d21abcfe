//===- Matcher.cpp - which rules of a policy an operation meets -----------===//

#include "passes/Policy/Matcher.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/Suggest.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// What selectors look at
//===----------------------------------------------------------------------===//

StringRef mlir::mp::policyName(Operation *op) {
  if (isa<CastOp, RoundOp>(op))
    return op->getName().getStringRef();
  return frameworkCallee(op);
}

static FloatType floatElement(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
}

bool mlir::mp::hasFloatOperand(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), floatElement);
}

bool mlir::mp::hasFloatResult(Operation *op) {
  return llvm::any_of(op->getResultTypes(), floatElement);
}

bool mlir::mp::followsOperand(Operation *op) {
  if (isa<CastOp, RoundOp>(op))
    return true;
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && precision.isView();
}

static std::string fullName(StringRef path, StringRef callee) {
  return path.empty() ? callee.str() : (path + "/" + callee).str();
}

static bool matchesType(const PolicyRule &rule, TypeRange types) {
  if (rule.dtype.empty())
    return true;
  return llvm::any_of(types, [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return false;
    std::string text;
    llvm::raw_string_ostream(text) << tensor.getElementType();
    return text == rule.dtype;
  });
}

/// True if `place` is the selector's file, or that is its end.
static bool matchesLine(const PolicyRule &rule, Location loc) {
  if (rule.file.empty())
    return true;
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place || place.getLine() < rule.firstLine ||
      place.getLine() > rule.lastLine)
    return false;
  StringRef file = place.getFilename().getValue();
  return file.consume_back(rule.file) && (file.empty() || file.ends_with("/"));
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

bool PolicyMatcher::matchesNames(const PolicyRule &rule, StringRef path,
                                 StringRef callee, bool follows) const {
  if (follows && !rule.op && !rule.name)
    return false;
  if (rule.module && !rule.module->match(path))
    return false;
  if (rule.op && !rule.op->match(callee))
    return false;
  return !rule.name || rule.name->match(fullName(path, callee));
}

ArrayRef<unsigned> PolicyMatcher::candidates(StringRef path, StringRef callee,
                                             bool follows) {
  auto [it, isNew] = cache.try_emplace(
      std::pair<const void *, const void *>(path.data(), callee.data()));
  if (isNew)
    for (auto [i, rule] : llvm::enumerate(policy.rules))
      if (matchesNames(rule, path, callee, follows))
        it->second.push_back(i);
  return it->second;
}

SmallVector<unsigned, 4> PolicyMatcher::rulesFor(Operation *op) {
  SmallVector<unsigned, 4> matching;
  StringRef callee = policyName(op);
  if (callee.empty() || (!hasFloatOperand(op) && !hasFloatResult(op)))
    return matching;
  StringRef path = modulePathOf(op->getLoc());
  for (unsigned i : candidates(path, callee, followsOperand(op)))
    if (matchesType(policy.rules[i], op->getResultTypes()) &&
        matchesLine(policy.rules[i], op->getLoc()))
      matching.push_back(i);
  return matching;
}

static StringRef argumentName(BlockArgument arg) {
  auto func = dyn_cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
  auto name = func ? func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                       MPDialect::kNameAttrName)
                   : StringAttr();
  return name ? name.getValue() : StringRef();
}

SmallVector<unsigned, 4> PolicyMatcher::rulesFor(BlockArgument arg) {
  SmallVector<unsigned, 4> matching;
  StringRef name = argumentName(arg);
  if (name.empty() || !floatElement(arg.getType()))
    return matching;
  for (auto [i, rule] : llvm::enumerate(policy.rules))
    if (rule.name && !rule.module && !rule.op && rule.file.empty() &&
        rule.name->match(name) && matchesType(rule, arg.getType()))
      matching.push_back(i);
  return matching;
}

//===----------------------------------------------------------------------===//
// Rules that match nothing
//===----------------------------------------------------------------------===//

Unmatched::Unmatched(func::FuncOp func) {
  func.walk([&](Operation *op) {
    StringRef callee = policyName(op);
    if (callee.empty())
      return;
    operators.insert(callee);
    operators.insert(stripOverload(callee));
    paths.insert(modulePathOf(op->getLoc()));
    auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
    if (place && places.insert(place))
      files.insert(place.getFilename().getValue());
  });
}

/// The nearest path. A number in it that the pattern leaves open is none of the
/// mistakes.
static std::string nearestPath(StringRef pattern, ArrayRef<StringRef> paths) {
  std::string word = pattern.str();
  llvm::erase(word, '*');
  StringRef nearest = nearestName(word, paths);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

std::string Unmatched::whyNoModule(const ModuleGlob &glob) const {
  std::string text =
      ("no operation is in a module '" + glob.text() + "'").str();
  auto inside = ModuleGlob::create((glob.text() + ".**").str());
  if (!inside)
    return llvm::consumeError(inside.takeError()), text;
  for (StringRef path : paths)
    if (inside->match(path))
      return text + " itself, but some are in '" + path.str() +
             "'; did you mean '" + inside->text().str() + "'?";
  return text + nearestPath(glob.text(), paths.getArrayRef());
}

std::string Unmatched::whyNoLine(const PolicyRule &rule) const {
  SmallVector<StringRef> bases;
  for (StringRef file : files) {
    if (file.ends_with(rule.file))
      return "no operation is on line " + std::to_string(rule.firstLine) +
             (rule.firstLine == rule.lastLine
                  ? ""
                  : " to " + std::to_string(rule.lastLine)) +
             " of '" + rule.file + "'";
    bases.push_back(file.substr(file.rfind('/') + 1));
  }
  return "no operation is of a file '" + rule.file + "'" +
         suggest(rule.file, bases);
}

std::string Unmatched::why(const PolicyRule &rule) const {
  if (rule.module && llvm::none_of(paths, [&](StringRef path) {
        return rule.module->match(path);
      }))
    return whyNoModule(*rule.module);
  if (rule.op && llvm::none_of(operators, [&](StringRef name) {
        return rule.op->match(name);
      }))
    return ("no operator is '" + rule.op->text() + "'").str() +
           suggest(rule.op->text(), operators.getArrayRef());
  if (!rule.file.empty() && llvm::none_of(places, [&](Location place) {
        return matchesLine(rule, place);
      }))
    return whyNoLine(rule);
  if (rule.name && !rule.module && !rule.op)
    return "no name matches '" + rule.nameText +
           "'; names are like 'layers.0.mlp/aten.mm.default'";
  return "no operation meets all of its selectors";
}
