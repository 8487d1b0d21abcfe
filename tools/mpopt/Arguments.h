//===- Arguments.h - command lines of the subcommands ----------*- C++ -*-===//
//
// A subcommand lists its options; parsing checks them and names the nearest
// known one for a word that it does not know.
//
//===----------------------------------------------------------------------===//

#ifndef MP_TOOLS_MPOPT_ARGUMENTS_H
#define MP_TOOLS_MPOPT_ARGUMENTS_H

#include "dialect/IR/Suggest.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::mp {

struct OptionSpec {
  llvm::StringRef name;  ///< with its dashes: "--format", "-o"
  llvm::StringRef value; ///< what its value is called
  llvm::StringRef help;
  std::vector<llvm::StringRef> choices; ///< allowed values; empty for any
};

struct CommandSpec {
  llvm::StringRef name;
  llvm::StringRef summary;
  /// Names of its positional arguments; "GRAPH..." takes one or more.
  std::vector<llvm::StringRef> inputs;
  std::vector<OptionSpec> options; ///< each takes a value
};

struct Arguments {
  std::vector<std::string> inputs;
  llvm::StringMap<std::string> options;
  bool wantsHelp = false;

  /// Value of `option`, or `otherwise` if it was not given.
  llvm::StringRef get(llvm::StringRef option, llvm::StringRef otherwise) const;
};

llvm::Expected<Arguments> parseArguments(const CommandSpec &command,
                                         llvm::ArrayRef<llvm::StringRef> words);

/// Usage, inputs and options of a command.
std::string usageOf(const CommandSpec &command);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_ARGUMENTS_H
