//===- Pipelines.cpp - named sequences of passes --------------------------===//

#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::mp;

void mlir::mp::buildDefaultPipeline(OpPassManager &pm,
                                    const PipelineOptions &options) {
  OpPassManager &nested = pm.nest<func::FuncOp>();
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (!llvm::is_contained(options.disable, pass->getArgument()))
      nested.addPass(std::move(pass));
  };
  // First, so that no later pass meets a second spelling of a conversion.
  add(createNormalize());
  // Before conversions move: afterwards they could hide a pattern.
  add(createRaise());
  add(createEliminateCasts({options.numerics}));
  // Last but one: the graph goes back to the framework.
  add(createLower());
  // On what the framework gets, so that the report is about that.
  add(createReportCasts({options.numerics}));
}

void mlir::mp::registerPipelines() {
  static PassPipelineRegistration<PipelineOptions> pipeline(
      "mp-default", "Clean conversions under a numerics contract",
      buildDefaultPipeline);
}
