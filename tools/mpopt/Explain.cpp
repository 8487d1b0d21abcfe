//===- Explain.cpp - mpopt explain ----------------------------------------===//

#include "passes/Report/ReportPrinters.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/GraphPair.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

int mlir::mp::runExplain(const Arguments &arguments) {
  Session session;
  Expected<GraphPair> pair =
      loadPair(session, arguments.inputs.front(), arguments);
  if (!pair)
    return reportError(pair.takeError());
  CastReport report = makeReport(*pair->before, *pair->after);
  report.input = arguments.inputs.front();
  report.numerics = std::move(pair->numerics);

  StringRef format = arguments.get("--format", "text");
  auto print = format == "json"   ? printJSON
               : format == "html" ? printHTML
                                  : printText;
  Error error = writeOutput(arguments.get("-o", "-"),
                            [&](llvm::raw_ostream &os) { print(report, os); });
  return error ? reportError(std::move(error)) : Ok;
}
