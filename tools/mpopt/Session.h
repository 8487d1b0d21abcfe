//===- Session.h - a context for one run of a subcommand -------*- C++ -*-===//

#ifndef MP_TOOLS_MPOPT_SESSION_H
#define MP_TOOLS_MPOPT_SESSION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::mp {

/// Registers our dialect and passes, func, and the passes that one wants beside
/// them (canonicalize, cse, ...).
void registerEverything(DialectRegistry &registry);

/// A context whose warnings go to stderr and whose errors become llvm::Errors.
class Session {
public:
  Session();

  /// Loads any input; of a bundle, the graph before the passes.
  llvm::Expected<OwningOpRef<ModuleOp>> load(llvm::StringRef path,
                                             llvm::StringRef model);

  /// Runs a textual pipeline on `module`.
  llvm::Error run(ModuleOp module, llvm::StringRef pipeline);

  /// Errors reported since the last run, each with its place.
  llvm::ArrayRef<std::string> errors() const { return errorTexts; }

  MLIRContext *context() { return &mlirContext; }

private:
  MLIRContext mlirContext;
  std::vector<std::string> errorTexts;
  ScopedDiagnosticHandler handler;
};

/// Calls `write` with the stream of `path`; "-" is stdout.
llvm::Error writeOutput(llvm::StringRef path,
                        llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_SESSION_H
