//===- GraphPair.h - a graph before and after the passes -------*- C++ -*-===//

#ifndef MP_TOOLS_MPOPT_GRAPHPAIR_H
#define MP_TOOLS_MPOPT_GRAPHPAIR_H

#include "tools/mpopt/Arguments.h"
#include "tools/mpopt/Session.h"

namespace mlir::mp {

struct GraphPair {
  OwningOpRef<ModuleOp> before, after;
  std::string numerics; ///< contract of the passes, empty if unknown
  /// The passes; none of a bundle that does not name them.
  std::optional<std::string> pipeline;
};

/// The graph at `input` before and after. A bundle holds what the backend did;
/// of anything else, the passes run now. Reads the options --model, --target,
/// --policy, --numerics and --epsilon. Conversions are mp.cast on both sides.
llvm::Expected<GraphPair> loadPair(Session &session, llvm::StringRef input,
                                   const Arguments &arguments);

/// The passes to run on what is no bundle: by --numerics and --epsilon, else by
/// --policy, else by default. There is no partition: what backward reads is
/// taken for saved.
llvm::Expected<std::string> pipelineNow(const Arguments &arguments);

/// Makes every function carry the policy of --policy, and the kinds of
/// operators of whatever policy it carries then.
llvm::Error setPolicies(ModuleOp module, const Arguments &arguments);

} // namespace mlir::mp

#endif // MP_TOOLS_MPOPT_GRAPHPAIR_H
