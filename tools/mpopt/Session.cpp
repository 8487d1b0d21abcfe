//===- Session.cpp - a context for one run of a subcommand ----------------===//

#include "tools/mpopt/Session.h"
#include "codegen/Lower/Passes.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPDialect.h"
#include "dialect/Import/Load.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

void mlir::mp::registerEverything(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, MPDialect>();
  // Kernels.
  registry.insert<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                  tensor::TensorDialect>();
  func::registerAllExtensions(registry);
  registerTransformsPasses();
  registerMPPasses();
  registerMPCodegenPasses();
  registerPipelines();
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerEverything(registry);
  return registry;
}

/// "layers.0 (model.py:12): what is wrong", and the notes below it.
static std::string textOf(Diagnostic &diagnostic) {
  auto place = [](Location loc) {
    std::string text = modulePathOf(loc).str();
    if (auto file = loc->findInstanceOf<FileLineColLoc>())
      text += (text.empty() ? "" : " ") +
              ("(" + file.getFilename().getValue()).str() + ":" +
              std::to_string(file.getLine()) + ")";
    return text.empty() ? text : text + ": ";
  };
  std::string text = place(diagnostic.getLocation()) + diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    text += "\n  note: " + place(note.getLocation()) + note.str();
  return text;
}

Session::Session()
    : mlirContext(makeRegistry(), MLIRContext::Threading::DISABLED),
      handler(&mlirContext, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
          llvm::errs() << "mpopt: warning: " << diagnostic.str() << '\n';
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errorTexts.push_back(textOf(diagnostic));
        return success();
      }) {
  mlirContext.loadAllAvailableDialects();
}

Expected<OwningOpRef<ModuleOp>> Session::load(StringRef path, StringRef model) {
  return loadModule(path, &mlirContext, model);
}

Error Session::run(ModuleOp module, StringRef pipeline) {
  PassManager pm(&mlirContext);
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (failed(parsePassPipeline(pipeline, pm, stream)))
    return llvm::createStringError(llvm::errc::invalid_argument,
                                   "pipeline '" + pipeline + "': " + message);
  errorTexts.clear();
  if (failed(pm.run(module)))
    return llvm::createStringError(
        llvm::errc::invalid_argument,
        "pipeline '" + pipeline + "' failed: " +
            (errorTexts.empty() ? "no reason given" : errorTexts.front()));
  return Error::success();
}

Error mlir::mp::writeOutput(
    StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(path, &message);
  if (!output)
    return llvm::createStringError(llvm::errc::io_error, message);
  write(output->os());
  output->keep();
  return Error::success();
}
