//===- Codegen.cpp - definition of the Python module _codegen -------------===//
//
// The code generator: apart from `_mpopt`, for it holds LLVM's targets, which a
// process without kernels of ours need not load.
//
//===----------------------------------------------------------------------===//

#include "python/src/CodegenBindings.h"

PYBIND11_MODULE(_codegen, m) {
  m.doc() = "Kernels from their texts. See _codegen.pyi.";
  mlir::mp::python::bindCpuKernels(m);
  mlir::mp::python::bindCuda(m);
}
