//===- Module.cpp - definition of the Python module _mpopt ----------------===//

#include "dialect/IR/OpTable.h"
#include "python/src/Bindings.h"

using namespace mlir::mp;

PYBIND11_MODULE(_mpopt, m) {
  m.doc() = "The mpopt compiler in process. See _mpopt.pyi.";
  m.def("version", [] { return MPOPT_VERSION; });
  m.def("op_kind", [](const std::string &callee) {
    const OpRow *row = lookupOpRow(callee);
    return stringifyOpKind(row ? row->kind : OpKind::Unknown).str();
  });
  python::bindCompiler(m);
  python::bindCostModel(m);
  python::bindRuntime(m);
}
