//===- CpuKernelBindings.cpp - kernels for the CPU ------------------------===//

#include "codegen/CPU/Compile.h"
#include "python/src/CodegenBindings.h"
#include "runtime/Gemm/Gemm.h"

namespace py = pybind11;
using namespace mlir::mp;

static uintptr_t compileCpu(const std::string &text,
                            const std::string &cacheDirectory,
                            const std::string &isa,
                            const std::string &dumpDirectory) {
  cpu::CpuOptions options{cacheDirectory, isa, dumpDirectory};
  std::string error;
  const ::mp::runtime::CpuKernel *made = nullptr;
  {
    py::gil_scoped_release release;
    auto kernel = cpu::compileCpuKernel(text, options);
    if (kernel)
      made = *kernel;
    else
      error = llvm::toString(kernel.takeError());
  }
  if (!made)
    throw py::value_error(error);
  return reinterpret_cast<uintptr_t>(made);
}

static py::dict cpuCounters() {
  cpu::CpuCounters counters = cpu::cpuCounters();
  py::dict result;
  result["compiled"] = counters.compiled;
  result["loaded"] = counters.loaded;
  return result;
}

/// Empty if the machine has no such instructions.
static std::string cpuIsa(const std::string &element, const std::string &isa) {
  using ::mp::runtime::gemm::Element;
  Element of = element == "bf16"  ? Element::BF16
               : element == "f16" ? Element::F16
                                  : Element::F32;
  const char *found =
      ::mp::runtime::gemm::chooseIsa(of, isa.empty() ? nullptr : isa.c_str());
  return found ? found : "";
}

void mlir::mp::python::bindCpuKernels(py::module_ &m) {
  m.def("compile_cpu", compileCpu, py::arg("text"), py::kw_only(),
        py::arg("cache_directory") = "", py::arg("isa") = "",
        py::arg("dump_directory") = "");
  m.def("cpu_counters", cpuCounters);
  m.def("cpu_isa", cpuIsa, py::arg("element"), py::arg("isa") = "");
}
