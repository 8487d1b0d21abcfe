//===- Commands.h - subcommands of mpopt -----------------------*- C++ -*-===//

#ifndef MP_TOOLS_MPOPT_COMMANDS_H
#define MP_TOOLS_MPOPT_COMMANDS_H

#include "tools/mpopt/Arguments.h"

namespace mlir::mp {

/// What the program returns to the shell.
enum ExitCode : int {
  Ok = 0,
  Different = 1, ///< graphs differ, or a rewrite violates its contract
  BadInput = 2,  ///< bad usage, unreadable input, failed pass
};

struct Command {
  CommandSpec spec;
  int (*run)(const Arguments &arguments);
};

llvm::ArrayRef<Command> commands();

int runBudget(const Arguments &arguments);
int runExplain(const Arguments &arguments);
int runDiff(const Arguments &arguments);
int runCheck(const Arguments &arguments);
int runMeasure(const Arguments &arguments);
int runPolicy(const Arguments &arguments);

/// The mlir-opt-like driver: parses `argv` itself.
int runDriver(int argc, char **argv);

/// The page that `mpopt --help` prints.
void printHelp(llvm::raw_ostream &os);

/// Prints "mpopt: error: ..." and returns BadInput.
int reportError(const llvm::Twine &what);
int reportError(llvm::Error error);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_COMMANDS_H
