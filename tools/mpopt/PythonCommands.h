//===- PythonCommands.h - commands that need PyTorch -----------*- C++ -*-===//

#ifndef MP_TOOLS_MPOPT_PYTHONCOMMANDS_H
#define MP_TOOLS_MPOPT_PYTHONCOMMANDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::mp {

struct PythonCommand {
  llvm::StringRef name;
  llvm::StringRef summary;
};

/// The rows of PythonCommands.def.
llvm::ArrayRef<PythonCommand> pythonCommands();

/// Becomes `python -m mpopt` with the words of this command line; returns an
/// exit code only if no Python can be started. Python is the one beside this
/// program (a wheel's), else the one on PATH.
int runPython(char **argv);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_PYTHONCOMMANDS_H
