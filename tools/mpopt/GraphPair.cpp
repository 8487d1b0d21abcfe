//===- GraphPair.cpp - a graph before and after the passes ----------------===//

#include "tools/mpopt/GraphPair.h"
#include "dialect/IR/MPDialect.h"
#include "dialect/Import/Load.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Pipelines.h"
#include "passes/Policy/FunctionPolicy.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

static void setTarget(ModuleOp module, StringRef target) {
  module.walk([&](func::FuncOp func) {
    func->setAttr(MPDialect::kTargetAttrName,
                  StringAttr::get(func.getContext(), target));
  });
}

/// The policy of --policy, if there is one.
static Expected<std::optional<Policy>> policyIn(const Arguments &arguments) {
  if (!arguments.options.contains("--policy"))
    return std::optional<Policy>();
  Expected<Policy> policy = loadPolicy(arguments.get("--policy", ""));
  if (!policy)
    return policy.takeError();
  return std::optional(std::move(*policy));
}

/// --epsilon, else that of the policy, else the default.
static Expected<double> epsilonIn(const Arguments &arguments,
                                  const std::optional<Policy> &policy) {
  double epsilon = AssignPrecisionOptions().epsilon;
  if (policy && policy->epsilon)
    epsilon = *policy->epsilon;
  StringRef text = arguments.get("--epsilon", "");
  if (!text.empty() &&
      (text.getAsDouble(epsilon) || !std::isfinite(epsilon) || epsilon < 0))
    return llvm::createStringError("--epsilon takes a number from 0 on, not '" +
                                   text + "'");
  return epsilon;
}

Expected<std::string> mlir::mp::pipelineNow(const Arguments &arguments) {
  Expected<std::optional<Policy>> policy = policyIn(arguments);
  if (!policy)
    return policy.takeError();
  std::string level =
      *policy ? (*policy)->level.value_or("precise") : std::string("precise");
  StringRef numerics = arguments.get("--numerics", level);
  if (numerics != "relaxed") {
    if (arguments.options.contains("--epsilon"))
      return llvm::createStringError("--epsilon needs --numerics=relaxed");
    return ("mp-default{numerics=" + numerics + "}").str();
  }
  Expected<double> epsilon = epsilonIn(arguments, *policy);
  if (!epsilon)
    return epsilon.takeError();
  return llvm::formatv("mp-default{{numerics=precise},"
                       "mp-partitioned{{numerics=relaxed epsilon={0}}",
                       *epsilon)
      .str();
}

/// The pipeline of a bundle, or the one to run now; none of a bundle that does
/// not name it.
static Expected<std::optional<std::string>>
pipelineFor(StringRef input, const Arguments &arguments) {
  if (!isBundle(input)) {
    Expected<std::string> pipeline = pipelineNow(arguments);
    if (!pipeline)
      return pipeline.takeError();
    return std::optional(std::move(*pipeline));
  }
  for (StringRef option : {"--numerics", "--epsilon", "--policy"})
    if (arguments.options.contains(option))
      return llvm::createStringError(
          option +
          ": the passes of a bundle have run; leave it out, or name "
          "its file '" +
          kBundleBefore + ".mlir'");
  return bundlePipeline(input);
}

/// The contract that a pipeline keeps.
static Expected<std::string> contractFor(StringRef input, StringRef pipeline) {
  std::string message;
  FailureOr<std::string> contract = contractOf(pipeline, message);
  if (failed(contract))
    return llvm::createStringError(input + ": pipeline '" + pipeline +
                                   "': " + message);
  return *contract;
}

Error mlir::mp::setPolicies(ModuleOp module, const Arguments &arguments) {
  Expected<std::optional<Policy>> given = policyIn(arguments);
  if (!given)
    return given.takeError();
  for (auto func : module.getOps<func::FuncOp>()) {
    if (*given)
      setPolicy(func, **given);
    Expected<std::optional<Policy>> policy = policyOf(func);
    if (!policy)
      return policy.takeError();
    if (*policy)
      setOpRows(func, **policy);
  }
  return Error::success();
}

static Expected<GraphPair> loadGraphs(Session &session, StringRef input,
                                      StringRef pipeline,
                                      const Arguments &arguments) {
  StringRef model = arguments.get("--model", "");
  GraphPair pair;
  Expected<OwningOpRef<ModuleOp>> before = session.load(input, model);
  if (!before)
    return before.takeError();
  pair.before = std::move(*before);
  if (arguments.options.contains("--target"))
    setTarget(*pair.before, arguments.get("--target", ""));
  if (Error error = setPolicies(*pair.before, arguments))
    return error;

  if (isBundle(input)) {
    Expected<std::string> member = bundleMember(input, kBundleAfter);
    if (!member)
      return member.takeError();
    Expected<OwningOpRef<ModuleOp>> after = session.load(*member, model);
    if (!after)
      return after.takeError();
    pair.after = std::move(*after);
  } else {
    pair.after = OwningOpRef<ModuleOp>(pair.before->clone());
    if (Error error = session.run(*pair.after, pipeline))
      return error;
  }
  // One spelling of a conversion on both sides.
  for (ModuleOp module : {*pair.before, *pair.after})
    if (Error error = session.run(module, "func.func(mp-normalize)"))
      return error;
  return pair;
}

Expected<GraphPair> mlir::mp::loadPair(Session &session, StringRef input,
                                       const Arguments &arguments) {
  Expected<std::optional<std::string>> pipeline = pipelineFor(input, arguments);
  if (!pipeline)
    return pipeline.takeError();
  std::string contract;
  if (*pipeline) {
    Expected<std::string> known = contractFor(input, **pipeline);
    if (!known)
      return known.takeError();
    contract = std::move(*known);
  }
  Expected<GraphPair> pair =
      loadGraphs(session, input, pipeline->value_or(""), arguments);
  if (pair) {
    pair->numerics = std::move(contract);
    pair->pipeline = std::move(*pipeline);
  }
  return pair;
}
