//===- CudaBindings.cpp - kernels for GPUs --------------------------------===//

#include "codegen/CUDA/Compile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "python/src/CodegenBindings.h"
#include "runtime/CudaUpdate.h"

using namespace mlir;
using namespace mlir::mp;
namespace py = pybind11;

static py::dict mapToPython(const ::mp::runtime::TensorMap &map) {
  static constexpr const char *elements[] = {"f16", "bf16", "f32"};
  py::dict d;
  py::list extents, box;
  for (int32_t i = 0; i != map.rank; ++i)
    extents.append(py::make_tuple(map.extents[i].factor, map.extents[i].size));
  for (uint32_t extent : map.box)
    box.append(extent);
  d["buffer"] = map.buffer;
  d["element"] = elements[size_t(map.element)];
  d["extents"] = extents;
  d["box"] = box;
  return d;
}

static py::dict kernelToPython(const cuda::CompiledKernel &kernel) {
  const ::mp::runtime::CudaKernel &launch = kernel.launch;
  const ::mp::runtime::CudaGrid &grid = launch.grid;
  py::dict d;
  py::list maps;
  for (const ::mp::runtime::TensorMap &map : kernel.maps)
    maps.append(mapToPython(map));
  d["name"] = kernel.name;
  d["ptx"] = kernel.ptx;
  d["extent"] = py::make_tuple(grid.extent[0], grid.extent[1], grid.extent[2]);
  d["factor"] = py::make_tuple(grid.factor[0], grid.factor[1], grid.factor[2]);
  d["tile"] = py::make_tuple(grid.tile[0], grid.tile[1], grid.tile[2]);
  d["flat"] = grid.flat;
  d["blocks_per_processor"] = grid.blocksPerProcessor;
  d["block"] =
      py::make_tuple(launch.block[0], launch.block[1], launch.block[2]);
  d["shared_bytes"] = launch.dynamicSharedBytes;
  d["workspace_per_block"] = launch.workspacePerBlock;
  d["workspace_bytes"] = launch.workspaceBytes;
  d["maps"] = maps;
  d["note"] = kernel.note;
  return d;
}

using Kernels = FailureOr<std::vector<cuda::CompiledKernel>>;
using Compile = llvm::function_ref<Kernels(MLIRContext &)>;

/// Runs `compile`; what went wrong is in `errors`.
static Kernels compileGuarded(Compile compile, std::string &errors) {
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += (errors.empty() ? "" : "; ") + diagnostic.str();
  });
  return compile(context);
}

static const cuda::Chip &chipCalled(const std::string &name) {
  if (const cuda::Chip *chip = cuda::findChip(name))
    return *chip;
  throw py::value_error("no chip is called " + name);
}

static py::list kernelsToPython(Compile compile) {
  std::string errors;
  Kernels kernels = failure();
  {
    py::gil_scoped_release release;
    kernels = compileGuarded(compile, errors);
  }
  if (failed(kernels))
    throw py::value_error(errors.empty() ? "unknown error" : errors);
  py::list result;
  for (const cuda::CompiledKernel &kernel : *kernels)
    result.append(kernelToPython(kernel));
  return result;
}

static py::list compileCuda(const std::string &text, const std::string &chip,
                            const std::vector<std::string> &libdevice,
                            const std::string &dump,
                            const std::string &dumpName) {
  const cuda::Chip &target = chipCalled(chip);
  cuda::LoweringOptions options;
  options.libdevice.assign(libdevice.begin(), libdevice.end());
  options.dumpFolder = dump;
  options.dumpName = dumpName;
  return kernelsToPython([&](MLIRContext &context) -> Kernels {
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return failure();
    return cuda::compileKernel(*module, target, options);
  });
}

static py::list compileCudaUpdate(const std::string &text,
                                  const std::string &chip,
                                  const std::string &dump,
                                  const std::string &dumpName) {
  const cuda::Chip &target = chipCalled(chip);
  cuda::LoweringOptions options;
  options.dumpFolder = dump;
  options.dumpName = dumpName;
  return kernelsToPython([&](MLIRContext &context) -> Kernels {
    auto kernel = cuda::compileUpdate(context, text, target, options);
    if (failed(kernel))
      return failure();
    std::vector<cuda::CompiledKernel> kernels;
    kernels.push_back(std::move(*kernel));
    return kernels;
  });
}

void mlir::mp::python::bindCuda(py::module_ &m) {
  m.def("chips", [] {
    py::list names;
    for (const cuda::Chip &chip : cuda::chips())
      names.append(chip.name.str());
    return names;
  });
  m.def("compile_cuda", &compileCuda, py::arg("text"), py::arg("chip"),
        py::arg("libdevice") = std::vector<std::string>(), py::arg("dump") = "",
        py::arg("dump_name") = "kernel");
  m.def("compile_cuda_update", &compileCudaUpdate, py::arg("text"),
        py::arg("chip"), py::arg("dump") = "", py::arg("dump_name") = "kernel");
  m.attr("poke_words") = mpopt::update::kCudaPokeWords;
}
