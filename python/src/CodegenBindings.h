//===- CodegenBindings.h - parts of the module _codegen ---------*- C++ -*-===//

#ifndef MP_PYTHON_SRC_CODEGENBINDINGS_H
#define MP_PYTHON_SRC_CODEGENBINDINGS_H

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace mlir::mp::python {

void bindCpuKernels(pybind11::module_ &m);
void bindCuda(pybind11::module_ &m);

} // namespace mlir::mp::python

#endif // MP_PYTHON_SRC_CODEGENBINDINGS_H
