//===- Diff.cpp - mpopt diff ----------------------------------------------===//

#include "passes/Report/GraphDiff.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

int mlir::mp::runDiff(const Arguments &arguments) {
  Session session;
  SmallVector<OwningOpRef<ModuleOp>> modules;
  for (const std::string &input : arguments.inputs) {
    Expected<OwningOpRef<ModuleOp>> module =
        session.load(input, arguments.get("--model", ""));
    if (!module)
      return reportError(module.takeError());
    // Two spellings of one conversion are no difference.
    if (Error error = session.run(**module, "func.func(mp-normalize)"))
      return reportError(std::move(error));
    modules.push_back(std::move(*module));
  }
  std::vector<RegionDiff> diff = diffGraphs(*modules[0], *modules[1]);
  printDiff(diff, llvm::outs());
  return diff.empty() ? Ok : Different;
}
