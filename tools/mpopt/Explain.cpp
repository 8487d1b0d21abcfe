//===- Explain.cpp - mpopt explain ----------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"
#include "passes/Report/ReportPrinters.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/GraphPair.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

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

int mlir::mp::runExplain(const Arguments &arguments) {
  Session session;
  Expected<GraphPair> pair =
      loadPair(session, arguments.inputs.front(), arguments);
  if (!pair)
    return reportError(pair.takeError());
  CastReport report = makeReport(*pair->before, *pair->after);
  report.input = arguments.inputs.front();
  report.numerics = std::move(pair->numerics);
  // A bundle's report does not need the files that its passes read.
  if (pair->pipeline)
    if (Error error =
            addPlacements(session, *pair->before, *pair->pipeline, report))
      report.notes.push_back("the choice of storage types is not shown: " +
                             llvm::toString(std::move(error)));

  StringRef format = arguments.get("--format", "text");
  auto print = format == "json"   ? printJSON
               : format == "html" ? printHTML
                                  : printText;
  Error error = writeOutput(arguments.get("-o", "-"),
                            [&](llvm::raw_ostream &os) { print(report, os); });
  return error ? reportError(std::move(error)) : Ok;
}
