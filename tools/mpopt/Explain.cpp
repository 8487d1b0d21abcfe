//===- Explain.cpp - mpopt explain ----------------------------------------===//

#include "dialect/IR/MPDialect.h"
#include "dialect/IR/Target.h"
#include "dialect/Import/Load.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"
#include "passes/Placement/Setup.h"
#include "passes/Policy/FunctionPolicy.h"
#include "passes/Report/ReportPrinters.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

namespace {
/// The two graphs that a report compares.
struct Pair {
  OwningOpRef<ModuleOp> before, after;
};
} // namespace

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

/// The passes to run on what is no bundle. There is no partition: what backward
/// reads is taken for saved.
static Expected<std::string> pipelineNow(const Arguments &arguments) {
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
pipelineFor(const Arguments &arguments) {
  StringRef input = arguments.inputs.front();
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

/// Makes every function carry the policy of --policy, and the kinds of
/// operators of whatever policy it carries then.
static Error setPolicies(ModuleOp module, const Arguments &arguments) {
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

/// A bundle holds what the backend did; of anything else, the passes run now.
static Expected<Pair> makePair(Session &session, const Arguments &arguments,
                               StringRef pipeline) {
  StringRef input = arguments.inputs.front();
  StringRef model = arguments.get("--model", "");
  Pair pair;
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

/// The options of mp-assign-precision if `pass`, as splitPipeline gives it, is
/// one.
static std::optional<AssignPrecisionOptions> assignOptionsIn(StringRef pass) {
  if (!pass.consume_front("func.func(") || !pass.consume_back(")"))
    return std::nullopt;
  OpPassManager pm(func::FuncOp::getOperationName());
  if (failed(parsePassPipeline(pass, pm, llvm::nulls())))
    return std::nullopt;
  for (const Pass &only : pm)
    return assignOptionsOf(only);
  return std::nullopt;
}

/// Adds what the last mp-assign-precision of a pipeline decides about `before`.
static Error addPlacements(Session &session, ModuleOp before,
                           StringRef pipeline, CastReport &report) {
  std::string message;
  FailureOr<std::vector<std::string>> passes = splitPipeline(pipeline, message);
  if (failed(passes))
    return llvm::createStringError(message);
  std::optional<AssignPrecisionOptions> options;
  size_t count = passes->size();
  while (!options && count > 0)
    options = assignOptionsIn((*passes)[--count]);
  if (!options)
    return Error::success();
  OwningOpRef<ModuleOp> module(before.clone());
  std::string first = llvm::join(ArrayRef(*passes).take_front(count), ",");
  if (Error error = session.run(*module, first))
    return error;
  for (auto func : module->getOps<func::FuncOp>()) {
    auto placement = makePlacementReport(func, *options);
    if (!placement)
      return placement.takeError();
    if (*placement)
      addPlacement(report, std::move(**placement));
  }
  return Error::success();
}

static Expected<CastReport> explain(Session &session,
                                    const Arguments &arguments) {
  StringRef input = arguments.inputs.front();
  Expected<std::optional<std::string>> known = pipelineFor(arguments);
  if (!known)
    return known.takeError();
  std::string pipeline = known->value_or("");
  Expected<Pair> pair = makePair(session, arguments, pipeline);
  if (!pair)
    return pair.takeError();
  CastReport report = makeReport(*pair->before, *pair->after);
  report.input = input;
  if (!*known)
    return report;
  Expected<std::string> contract = contractFor(input, pipeline);
  if (!contract)
    return contract.takeError();
  report.numerics = std::move(*contract);
  // A bundle's report does not need the files that its passes read.
  if (Error error = addPlacements(session, *pair->before, pipeline, report))
    report.notes.push_back("the choice of storage types is not shown: " +
                           llvm::toString(std::move(error)));
  return report;
}

int mlir::mp::runExplain(const Arguments &arguments) {
  Session session;
  Expected<CastReport> report = explain(session, arguments);
  if (!report)
    return reportError(report.takeError());

  StringRef format = arguments.get("--format", "text");
  auto print = format == "json"   ? printJSON
               : format == "html" ? printHTML
                                  : printText;
  Error error = writeOutput(arguments.get("-o", "-"),
                            [&](llvm::raw_ostream &os) { print(*report, os); });
  return error ? reportError(std::move(error)) : Ok;
}
