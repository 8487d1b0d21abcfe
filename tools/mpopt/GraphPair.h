//===- GraphPair.h - a graph before and after the passes -------*- C++ -*-===//

#ifndef MP_TOOLS_MPOPT_GRAPHPAIR_H
#define MP_TOOLS_MPOPT_GRAPHPAIR_H

#include "tools/mpopt/Arguments.h"
#include "tools/mpopt/Session.h"

namespace mlir::mp {

struct GraphPair {
  OwningOpRef<ModuleOp> before, after;
  std::string numerics; ///< contract of the passes, empty if unknown
};

/// The graph at `input` before and after. A bundle holds what the backend did;
/// of anything else, the passes run now. Reads the options --model, --target,
/// --policy and --numerics. Conversions are mp.cast on both sides.
llvm::Expected<GraphPair> loadPair(Session &session, llvm::StringRef input,
                                   const Arguments &arguments);

/// --numerics, else the level of --policy, else the default.
llvm::Expected<std::string> contractNow(const Arguments &arguments);

/// Makes every function carry the policy of --policy, and the kinds of
/// operators of whatever policy it carries then.
llvm::Error setPolicies(ModuleOp module, const Arguments &arguments);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_GRAPHPAIR_H
