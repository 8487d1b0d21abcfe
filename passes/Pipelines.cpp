//===- Pipelines.cpp - named sequences of passes --------------------------===//

#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

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

/// Cuts `text` at the commas that are not inside brackets.
static std::vector<std::string> splitAtTopLevel(StringRef text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    char letter = i == text.size() ? ',' : text[i];
    depth += letter == '(' || letter == '{';
    depth -= letter == ')' || letter == '}';
    if (letter != ',' || depth != 0)
      continue;
    if (StringRef part = text.slice(start, i).trim(); !part.empty())
      parts.push_back(part.str());
    start = i + 1;
  }
  return parts;
}

FailureOr<std::vector<std::string>>
mlir::mp::splitPipeline(StringRef pipeline, std::string &error) {
  OpPassManager pm(ModuleOp::getOperationName());
  llvm::raw_string_ostream os(error);
  if (failed(parsePassPipeline(pipeline, pm, os)))
    return failure();
  std::vector<std::string> passes;
  for (Pass &pass : pm) {
    std::string text;
    llvm::raw_string_ostream out(text);
    pass.printAsTextualPipeline(out);
    StringRef rest(text);
    if (!rest.consume_front("func.func(")) {
      passes.push_back(text);
      continue;
    }
    for (std::string &inner : splitAtTopLevel(rest.drop_back()))
      passes.push_back("func.func(" + inner + ")");
  }
  return passes;
}
