//===- CompilerBindings.cpp - the class Module ----------------------------===//
//
// Rule for every function here: convert arguments, release the GIL, call code
// that does not throw, take the GIL back, then throw.
//
//===----------------------------------------------------------------------===//

#include "codegen/Lower/Passes.h"
#include "dialect/IR/MPDialect.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/Policy/Policy.h"
#include "python/src/Bindings.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
namespace py = pybind11;

namespace {

const DialectRegistry &dialects() {
  static const DialectRegistry *registry = [] {
    auto *r = new DialectRegistry();
    r->insert<mp::MPDialect, func::FuncDialect>();
    mp::registerMPPasses();
    mp::registerMPCodegenPasses();
    mp::registerPipelines();
    registerCanonicalizerPass();
    registerCSEPass();
    return r;
  }();
  return *registry;
}

/// Collects the diagnostics of one call, to become a Python exception.
class Errors {
public:
  explicit Errors(MLIRContext *context)
      : handler(context, [this](Diagnostic &d) {
          llvm::raw_string_ostream os(text);
          if (!text.empty())
            os << '\n';
          os << d.getLocation() << ": " << d;
          for (Diagnostic &note : d.getNotes())
            os << "\n  note: " << note;
          return success();
        }) {}

  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

/// A module and the context that it lives in. The context has no threads: they
/// would not survive a fork, and Python calls from threads of its own.
class PyModule {
public:
  PyModule()
      : context(std::make_unique<MLIRContext>(
            dialects(), MLIRContext::Threading::DISABLED)) {}

  static std::unique_ptr<PyModule> parse(const py::bytes &source) {
    auto result = std::make_unique<PyModule>();
    std::string_view view = source;
    result->checked([&] {
      result->module = parseSourceString<ModuleOp>(
          llvm::StringRef(view.data(), view.size()), result->context.get());
      return bool(result->module);
    });
    return result;
  }

  static std::unique_ptr<PyModule> fromGraph(mp::Graph graph) {
    auto result = std::make_unique<PyModule>();
    result->graph = std::move(graph);
    result->checked([&] {
      result->module = mp::buildModule(result->graph, result->context.get());
      return bool(result->module);
    });
    return result;
  }

  /// `pipeline` is a bare list, "a,func.func(b)". A leading "builtin.module("
  /// would be taken for a nested module and silently run on nothing.
  void run(const std::string &pipeline, bool verify) {
    if (llvm::StringRef(pipeline).starts_with("builtin.module("))
      throw py::value_error("pipeline must not name the outer module");
    checked([&] {
      auto pm = PassManager::on<ModuleOp>(context.get());
      pm.enableVerifier(verify);
      std::string problem;
      llvm::raw_string_ostream os(problem);
      if (failed(parsePassPipeline(pipeline, pm, os)))
        return emitError(UnknownLoc::get(context.get()), problem), false;
      return succeeded(pm.run(*module));
    });
  }

  std::string text() {
    std::string out;
    py::gil_scoped_release release;
    llvm::raw_string_ostream os(out);
    module->print(os, OpPrintingFlags().enableDebugInfo(withLocations));
    return out;
  }

  py::bytes bytecode() {
    std::string out;
    bool ok;
    {
      py::gil_scoped_release release;
      llvm::raw_string_ostream os(out);
      ok = succeeded(writeBytecodeToFile(*module, os));
    }
    if (!ok)
      throw py::value_error("cannot write bytecode");
    return out;
  }

  py::dict edits() {
    FailureOr<mp::Edits> result = failure();
    checked([&] {
      result = mp::readEdits(*module, graph);
      return succeeded(result);
    });
    return mp::python::editsToPython(*result, graph);
  }

  /// The texts of the regions' kernels, each once.
  py::list kernels() {
    llvm::SetVector<StringAttr> texts;
    module->walk([&](mp::RegionOp region) {
      if (StringAttr kernel = region.getKernelAttr())
        texts.insert(kernel);
    });
    py::list list;
    for (StringAttr text : texts)
      list.append(py::str(text.data(), text.size()));
    return list;
  }

  /// Takes these kernels from their regions.
  void dropKernels(const std::vector<std::string> &texts) {
    module->walk([&](mp::RegionOp region) {
      StringAttr kernel = region.getKernelAttr();
      if (kernel && llvm::is_contained(texts, kernel.getValue()))
        region.removeKernelAttr();
    });
  }

  py::list rewrites() { return mp::python::rewritesToPython(*module); }

  bool withLocations = false;

private:
  /// Runs `work` without the GIL; a failure becomes ValueError.
  template <typename Work>
  void checked(Work work) {
    std::string text;
    bool ok;
    {
      py::gil_scoped_release release;
      Errors errors(context.get());
      ok = work();
      text = std::move(errors.text);
    }
    if (!ok)
      throw py::value_error(text.empty() ? "mpopt: unknown error" : text);
  }

  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  mp::Graph graph;
};

/// What the backend needs to know of a policy; ValueError says what is wrong.
py::dict readPolicy(const std::string &text, const std::string &name) {
  llvm::Expected<mp::Policy> policy = mp::parsePolicy(text, name);
  if (!policy)
    throw py::value_error(llvm::toString(policy.takeError()));
  py::dict result;
  result["level"] = policy->level;
  result["epsilon"] = policy->epsilon;
  result["sha256"] = policy->digest();
  return result;
}

} // namespace

void mlir::mp::python::bindCompiler(py::module_ &m) {
  m.def(
      "pipeline_passes",
      [](const std::string &pipeline) {
        dialects(); // registers the passes
        std::string error;
        auto passes = splitPipeline(pipeline, error);
        if (failed(passes))
          throw py::value_error(error);
        return *passes;
      },
      py::arg("pipeline"));
  m.def("read_policy", &readPolicy, py::arg("text"), py::arg("name"));
  py::class_<PyModule>(m, "Module")
      .def_static("parse", &PyModule::parse, py::arg("source"))
      .def_static(
          "from_graph",
          [](const py::list &inputs, const py::list &nodes,
             const py::list &outputs, const py::list &sources, std::string name,
             std::string attributes) {
            return PyModule::fromGraph(graphFromPython(inputs, nodes, outputs,
                                                       sources, std::move(name),
                                                       std::move(attributes)));
          },
          py::arg("inputs"), py::arg("nodes"), py::arg("outputs"),
          py::kw_only(), py::arg("sources") = py::list(),
          py::arg("name") = "joint", py::arg("attributes") = "")
      .def("run", &PyModule::run, py::arg("pipeline"), py::arg("verify") = true)
      .def("edits", &PyModule::edits)
      .def("rewrites", &PyModule::rewrites)
      .def("kernels", &PyModule::kernels)
      .def("drop_kernels", &PyModule::dropKernels, py::arg("texts"))
      .def("bytecode", &PyModule::bytecode)
      .def_readwrite("with_locations", &PyModule::withLocations)
      .def("__str__", &PyModule::text);
}
