//===- CostModelBindings.cpp - the class CostModel ------------------------===//

#include "passes/CostModel/CostModel.h"
#include "python/src/Bindings.h"

using namespace mlir::mp;
namespace py = pybind11;

/// The model, or ValueError with what is wrong.
static CostModel checked(llvm::Expected<CostModel> model) {
  if (!model)
    throw py::value_error(llvm::toString(model.takeError()));
  return std::move(*model);
}

/// What pybind11 makes a str or None of.
static std::optional<std::string> owned(std::optional<llvm::StringRef> text) {
  return text ? std::optional(text->str()) : std::nullopt;
}

static void bindMethods(py::class_<CostModel> &type) {
  type.def_readonly("name", &CostModel::name)
      .def_readonly("device", &CostModel::device)
      .def_readonly("bandwidth", &CostModel::bandwidth)
      .def_readonly("launch", &CostModel::launch)
      .def("sweep_seconds", &CostModel::sweepSeconds, py::arg("size"))
      .def(
          "cast_seconds",
          [](const CostModel &model, const std::string &from,
             const std::string &to, int64_t elements) {
            return model.castSeconds(from, to, elements);
          },
          py::arg("source"), py::arg("target"), py::arg("elements"))
      .def(
          "matmul_seconds",
          [](const CostModel &model, const std::string &type, int64_t batch,
             int64_t m, int64_t n,
             int64_t k) { return model.matmulSeconds(type, batch, m, n, k); },
          py::arg("dtype"), py::arg("batch"), py::arg("m"), py::arg("n"),
          py::arg("k"))
      .def(
          "half_pays",
          [](const CostModel &model, const std::string &half,
             const std::string &wide, int64_t batch, int64_t m, int64_t n,
             int64_t k) {
            HalfVerdict verdict = model.halfPays(half, wide, batch, m, n, k);
            return py::make_tuple(verdict.pays, verdict.gain, verdict.text);
          },
          py::arg("half"), py::arg("wide"), py::arg("batch"), py::arg("m"),
          py::arg("n"), py::arg("k"));
}

void python::bindCostModel(py::module_ &m) {
  py::class_<CostModel> type(m, "CostModel");
  type.def_static(
          "load",
          [](const std::string &nameOrPath) {
            return checked(loadCostModel(nameOrPath));
          },
          py::arg("name_or_path"))
      .def_static(
          "parse",
          [](const std::string &text, const std::string &file) {
            return checked(parseCostModel(text, file));
          },
          py::arg("text"), py::arg("file"));
  bindMethods(type);
  m.def("cost_models", [] {
    std::vector<std::string> names;
    for (llvm::StringRef name : builtinCostModels())
      names.push_back(name.str());
    return names;
  });
  m.def(
      "cost_model_text",
      [](const std::string &name) { return owned(builtinCostModelText(name)); },
      py::arg("name"));
  m.def("host_cost_model", [] { return hostCostModel().str(); });
  m.def(
      "cuda_cost_model",
      [](unsigned capability) { return owned(cudaCostModel(capability)); },
      py::arg("capability"));
}
