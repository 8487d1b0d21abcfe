//===- Globs.h - patterns over module paths and operators ------*- C++ -*-===//

#ifndef MP_PASSES_POLICY_GLOBS_H
#define MP_PASSES_POLICY_GLOBS_H

#include "llvm/Support/GlobPattern.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::mp {

/// A pattern over a module path, segment by segment: "layers.*.mlp", "**.attn".
/// `*` stands for letters of one segment, `?` for one letter, `[0-3]` for one
/// of several; a segment `**` stands for any number of segments, also none.
class ModuleGlob {
public:
  static llvm::Expected<ModuleGlob> create(llvm::StringRef pattern);

  /// True if the pattern is the whole of `path`. "**" also matches "", the
  /// model itself.
  bool match(llvm::StringRef path) const;

  llvm::StringRef text() const { return *pattern; }

private:
  /// The segments refer into it: it stays where it is when this is copied.
  std::shared_ptr<const std::string> pattern;
  /// None for a segment "**".
  std::vector<std::optional<llvm::GlobPattern>> segments;
};

/// A pattern over an operator's name, with or without its overload: "aten.mm",
/// "aten.*mm*", "aten.sum.dim_IntList".
class OperatorGlob {
public:
  static llvm::Expected<OperatorGlob> create(llvm::StringRef pattern);

  bool match(llvm::StringRef callee) const;

  llvm::StringRef text() const { return *pattern; }

private:
  std::shared_ptr<const std::string> pattern;
  llvm::GlobPattern glob;
};

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_GLOBS_H
