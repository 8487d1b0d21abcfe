//===- Globs.cpp - patterns over module paths and operators ---------------===//

#include "passes/Policy/Globs.h"
#include "dialect/IR/OpTable.h"

using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;
using llvm::GlobPattern;
using llvm::StringRef;

static Error globError(const llvm::Twine &what) {
  return llvm::createStringError(what);
}

static std::vector<StringRef> segmentsOf(StringRef path) {
  std::vector<StringRef> segments;
  while (!path.empty()) {
    auto [segment, rest] = path.split('.');
    segments.push_back(segment);
    path = rest;
  }
  return segments;
}

Expected<ModuleGlob> ModuleGlob::create(StringRef text) {
  if (text.starts_with(".") || text.ends_with(".") || text.contains(".."))
    return globError("has an empty segment");
  ModuleGlob result;
  result.pattern = std::make_shared<const std::string>(text);
  for (StringRef segment : segmentsOf(*result.pattern)) {
    if (segment == "**") {
      result.segments.emplace_back();
      continue;
    }
    if (segment.contains("**"))
      return globError("'**' must be a segment of its own, not part of '" +
                       segment + "'");
    Expected<GlobPattern> glob = GlobPattern::create(segment);
    if (!glob)
      return glob.takeError();
    result.segments.emplace_back(std::move(*glob));
  }
  return result;
}

/// The usual walk with one point to go back to: when a segment does not fit,
/// only the last "**" can be given one segment more.
bool ModuleGlob::match(StringRef path) const {
  std::vector<StringRef> names = segmentsOf(path);
  constexpr size_t none = -1;
  size_t name = 0, segment = 0, lastAny = none, nameAtAny = 0;
  while (name != names.size()) {
    if (segment != segments.size() && !segments[segment]) {
      lastAny = segment++;
      nameAtAny = name;
      continue;
    }
    if (segment != segments.size() && segments[segment]->match(names[name])) {
      ++segment;
      ++name;
      continue;
    }
    if (lastAny == none)
      return false;
    segment = lastAny + 1;
    name = ++nameAtAny;
  }
  while (segment != segments.size() && !segments[segment])
    ++segment;
  return segment == segments.size();
}

Expected<OperatorGlob> OperatorGlob::create(StringRef text) {
  OperatorGlob result;
  result.pattern = std::make_shared<const std::string>(text);
  Expected<GlobPattern> glob = GlobPattern::create(*result.pattern);
  if (!glob)
    return glob.takeError();
  result.glob = std::move(*glob);
  return result;
}

bool OperatorGlob::match(StringRef callee) const {
  return glob.match(callee) || glob.match(stripOverload(callee));
}
