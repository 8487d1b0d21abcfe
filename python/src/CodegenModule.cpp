//===- CodegenModule.cpp - definition of the Python module _codegen -------===//
//
// The code generator is a module of its own: a process that finds all its
// kernels compiled never loads it.
//
//===----------------------------------------------------------------------===//

#include "python/src/CodegenBindings.h"

PYBIND11_MODULE(_codegen, m) {
  m.doc() = "The code generator of mpopt in process. See _codegen.pyi.";
  m.def("version", [] { return MPOPT_VERSION; });
  mlir::mp::python::bindCpuKernels(m);
}
