//===- Bindings.h - what the parts of the Python module share --*- C++ -*-===//

#ifndef MP_PYTHON_SRC_BINDINGS_H
#define MP_PYTHON_SRC_BINDINGS_H

#include "dialect/Graph/Graph.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace mlir::mp::python {

namespace py = pybind11;

/// Columns from the lists of tuples that `Module.from_graph` documents.
Graph graphFromPython(const py::list &inputs, const py::list &nodes,
                      const py::list &outputs, const py::list &sources,
                      std::string name, std::string attributes);

/// The dictionary that `Module.edits` documents.
py::dict editsToPython(const Edits &edits, const Graph &graph);

/// The list that `Module.rewrites` documents.
py::list rewritesToPython(ModuleOp module);

/// Adds the class Module and the functions about pipelines.
void bindCompiler(py::module_ &m);

/// Adds the class CostModel and the functions that name models.
void bindCostModel(py::module_ &m);

/// Adds the classes Update and LossScaler.
void bindRuntime(py::module_ &m);

} // namespace mlir::mp::python

#endif // MP_PYTHON_SRC_BINDINGS_H
