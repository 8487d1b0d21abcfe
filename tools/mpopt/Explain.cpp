//===- Explain.cpp - mpopt explain ----------------------------------------===//

#include "dialect/IR/MPDialect.h"
#include "dialect/IR/Target.h"
#include "dialect/Import/Load.h"
#include "mlir/IR/Builders.h"
#include "passes/Pipelines.h"
#include "passes/Report/ReportPrinters.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"

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

/// A bundle holds what the backend did; of anything else, the passes run now.
static Expected<Pair> makePair(Session &session, const Arguments &arguments) {
  StringRef input = arguments.inputs.front();
  StringRef model = arguments.get("--model", "");
  Pair pair;
  Expected<OwningOpRef<ModuleOp>> before = session.load(input, model);
  if (!before)
    return before.takeError();
  pair.before = std::move(*before);
  if (arguments.options.contains("--target"))
    setTarget(*pair.before, arguments.get("--target", ""));

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
    std::string pipeline =
        ("mp-default{numerics=" + arguments.get("--numerics", "precise") + "}")
            .str();
    if (Error error = session.run(*pair.after, pipeline))
      return error;
  }
  // One spelling of a conversion on both sides.
  for (ModuleOp module : {*pair.before, *pair.after})
    if (Error error = session.run(module, "func.func(mp-normalize)"))
      return error;
  return pair;
}

/// The contract of a bundle's passes, or of those that ran now.
static Expected<std::string> contractFor(const Arguments &arguments) {
  StringRef input = arguments.inputs.front();
  if (!isBundle(input))
    return arguments.get("--numerics", "precise").str();
  if (arguments.options.contains("--numerics"))
    return llvm::createStringError("--numerics: the passes of a bundle have "
                                   "run; leave it out, or name its file '" +
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

int mlir::mp::runExplain(const Arguments &arguments) {
  Session session;
  Expected<Pair> pair = makePair(session, arguments);
  if (!pair)
    return reportError(pair.takeError());
  Expected<std::string> contract = contractFor(arguments);
  if (!contract)
    return reportError(contract.takeError());
  CastReport report = makeReport(*pair->before, *pair->after);
  report.input = arguments.inputs.front();
  report.numerics = std::move(*contract);

  StringRef format = arguments.get("--format", "text");
  auto print = format == "json"   ? printJSON
               : format == "html" ? printHTML
                                  : printText;
  Error error = writeOutput(arguments.get("-o", "-"),
                            [&](llvm::raw_ostream &os) { print(report, os); });
  return error ? reportError(std::move(error)) : Ok;
}
