//===- GraphPair.cpp - a graph before and after the passes ----------------===//

#include "tools/mpopt/GraphPair.h"
#include "dialect/IR/MPDialect.h"
#include "dialect/Import/Load.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Pipelines.h"
#include "passes/Policy/FunctionPolicy.h"

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

Expected<std::string> mlir::mp::contractNow(const Arguments &arguments) {
  if (arguments.options.contains("--numerics") ||
      !arguments.options.contains("--policy"))
    return arguments.get("--numerics", "precise").str();
  Expected<Policy> policy = loadPolicy(arguments.get("--policy", ""));
  if (!policy)
    return policy.takeError();
  return policy->level.value_or("precise");
}

/// The contract of a bundle's passes, or of those that ran now.
static Expected<std::string> contractFor(StringRef input,
                                         const Arguments &arguments) {
  if (!isBundle(input))
    return contractNow(arguments);
  for (StringRef option : {"--numerics", "--policy"})
    if (arguments.options.contains(option))
      return llvm::createStringError(
          option +
          ": the passes of a bundle have run; leave it out, or name "
          "its file '" +
          kBundleBefore + ".mlir'");
  Expected<std::optional<std::string>> pipeline = bundlePipeline(input);
  if (!pipeline)
    return pipeline.takeError();
  if (!*pipeline)
    return std::string();
  std::string message;
  FailureOr<std::string> contract = contractOf(**pipeline, message);
  if (failed(contract))
    return llvm::createStringError(input + ": pipeline '" + **pipeline +
                                   "': " + message);
  return *contract;
}

Error mlir::mp::setPolicies(ModuleOp module, const Arguments &arguments) {
  std::optional<Policy> given;
  if (arguments.options.contains("--policy")) {
    Expected<Policy> policy = loadPolicy(arguments.get("--policy", ""));
    if (!policy)
      return policy.takeError();
    given = std::move(*policy);
  }
  for (auto func : module.getOps<func::FuncOp>()) {
    if (given)
      setPolicy(func, *given);
    Expected<std::optional<Policy>> policy = policyOf(func);
    if (!policy)
      return policy.takeError();
    if (*policy)
      setOpRows(func, **policy);
  }
  return Error::success();
}

static Expected<GraphPair> loadGraphs(Session &session, StringRef input,
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
    Expected<std::string> contract = contractNow(arguments);
    if (!contract)
      return contract.takeError();
    std::string pipeline = "mp-default{numerics=" + *contract + "}";
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
  Expected<std::string> contract = contractFor(input, arguments);
  if (!contract)
    return contract.takeError();
  Expected<GraphPair> pair = loadGraphs(session, input, arguments);
  if (pair)
    pair->numerics = std::move(*contract);
  return pair;
}
