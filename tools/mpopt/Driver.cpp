//===- Driver.cpp - mpopt as mlir-opt -------------------------------------===//

#include "dialect/Import/GuardedParse.h"
#include "dialect/Import/Load.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

namespace {
/// Our own options, beside MLIR's.
struct DriverOptions {
  llvm::cl::opt<std::string> input{llvm::cl::Positional,
                                   llvm::cl::desc("<input file>"),
                                   llvm::cl::init("-")};
  llvm::cl::opt<std::string> output{"o", llvm::cl::desc("output file"),
                                    llvm::cl::value_desc("file"),
                                    llvm::cl::init("-")};
  llvm::cl::opt<std::string> model{
      "model", llvm::cl::desc("program of a .pt2 file that holds several"),
      llvm::cl::value_desc("name")};
};
} // namespace

/// What MLIR's driver shall read: text as it is, so that its own options for
/// text work; everything else as loaded here.
static Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(StringRef path, StringRef model) {
  if (!isBundle(path)) {
    std::string message;
    auto buffer = openInputFile(path, &message);
    if (!buffer)
      return llvm::createStringError(message);
    if (kindOf(path, buffer->getBuffer()) == InputKind::Text) {
      if (Error error = checkNesting(*buffer))
        return error;
      return buffer;
    }
    if (path == "-")
      return llvm::createStringError(
          "the standard input must be MLIR text; name the file instead");
  }
  Session session;
  Expected<OwningOpRef<ModuleOp>> module = session.load(path, model);
  if (!module)
    return module.takeError();
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(**module, stream)))
    return llvm::createStringError(path + ": cannot be written as bytecode");
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, path);
}

static int listPasses() {
  mlir::printRegisteredPasses();
  return Ok;
}

static int listDialects(DialectRegistry &registry) {
  llvm::outs() << "Available Dialects: ";
  llvm::interleave(registry.getDialectNames(), llvm::outs(), ",");
  llvm::outs() << '\n';
  return Ok;
}

int mlir::mp::runDriver(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registerEverything(registry);
  std::string header = registerCLIOptions("mpopt", registry);
  static DriverOptions options;
  if (!llvm::cl::ParseCommandLineOptions(argc, argv, header, &llvm::errs()))
    return BadInput;
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses())
    return listPasses();
  if (config.shouldShowDialects())
    return listDialects(registry);

  Expected<std::unique_ptr<llvm::MemoryBuffer>> input =
      readInput(options.input, options.model);
  if (!input)
    return reportError(input.takeError());
  std::string message;
  auto output = openOutputFile(options.output, &message);
  if (!output)
    return reportError(message);
  if (failed(MlirOptMain(output->os(), std::move(*input), registry, config)))
    return BadInput;
  output->keep();
  return Ok;
}
