//===- GraphBindings.cpp - tuples to columns, edits to dictionaries -------===//

#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "python/src/Bindings.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;
namespace py = pybind11;

namespace {
/// A table of distinct texts; interning here costs less than columns of
/// integers made in Python.
class Interner {
public:
  explicit Interner(std::vector<std::string> &table) : table(table) {}

  int32_t operator()(py::handle text) {
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data)
      throw py::error_already_set();
    llvm::StringRef view(data, size);
    auto [it, isNew] = index.try_emplace(view, table.size());
    if (isNew)
      table.emplace_back(data, size);
    return it->second;
  }

private:
  std::vector<std::string> &table;
  llvm::StringMap<int32_t> index;
};
} // namespace

static void addNode(Graph &graph, py::handle handle, Interner &targets,
                    Interner &types, Interner &attrs) {
  auto node = py::cast<py::tuple>(handle);
  if (node.size() != 6)
    throw py::value_error("a node is (target, attrs, operands, result types, "
                          "flags, source)");
  graph.target.push_back(targets(node[0]));
  graph.attr.push_back(attrs(node[1]));
  for (py::handle value : py::cast<py::tuple>(node[2]))
    graph.operands.push_back(py::cast<int32_t>(value));
  graph.operandEnd.push_back(graph.operands.size());
  for (py::handle type : py::cast<py::tuple>(node[3]))
    graph.resultTypes.push_back(types(type));
  graph.resultEnd.push_back(graph.resultTypes.size());
  graph.flags.push_back(py::cast<uint8_t>(node[4]));
  int32_t source = py::cast<int32_t>(node[5]);
  if (source >= int32_t(graph.sources.size()))
    throw py::value_error("source number out of range");
  graph.source.push_back(source);
}

Graph mlir::mp::python::graphFromPython(
    const py::list &inputs, const py::list &nodes, const py::list &outputs,
    const py::list &sources, std::string name, std::string attributes) {
  Graph graph;
  graph.name = std::move(name);
  graph.attributes = std::move(attributes);
  Interner targets(graph.targets), types(graph.types), attrs(graph.attrs);
  for (py::handle h : sources) {
    auto source = py::cast<py::tuple>(h);
    graph.sources.push_back({py::cast<std::string>(source[0]),
                             py::cast<std::string>(source[1]),
                             py::cast<int32_t>(source[2])});
  }
  for (py::handle h : inputs) {
    auto input = py::cast<py::tuple>(h);
    graph.inputTypes.push_back(types(input[0]));
    graph.inputAttrs.push_back(py::cast<std::string>(input[1]));
  }
  for (py::handle h : nodes)
    addNode(graph, h, targets, types, attrs);
  for (py::handle h : outputs) {
    auto output = py::cast<py::tuple>(h);
    graph.outputs.push_back(py::cast<int32_t>(output[0]));
    graph.outputAttrs.push_back(py::cast<std::string>(output[1]));
  }
  return graph;
}

template <typename T>
static std::string printed(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

namespace {
/// Texts of types and attributes: a printer takes longer to set up than to run.
class Printed {
public:
  template <typename T>
  py::str operator()(T value) {
    auto [it, isNew] = texts.try_emplace(value.getAsOpaquePointer());
    if (isNew)
      it->second = py::str(printed(value));
    return it->second;
  }

private:
  llvm::DenseMap<const void *, py::str> texts;
};
} // namespace

static py::dict addedToPython(const Edits::Added &added, Printed &printed) {
  py::dict d;
  d["before"] = added.before;
  d["like"] = added.like;
  llvm::StringRef callee = frameworkCallee(added.op);
  d["op"] =
      callee.empty() ? added.op->getName().getStringRef().str() : callee.str();
  d["dtype"] = py::none();
  d["origin"] = py::none();
  if (auto cast = dyn_cast<CastOp>(added.op)) {
    d["dtype"] = printed(cast.getTo());
    d["origin"] = stringifyCastOrigin(cast.getOrigin()).str();
  } else if (auto round = dyn_cast<RoundOp>(added.op)) {
    d["dtype"] = printed(round.getFormat());
    d["origin"] = stringifyCastOrigin(round.getOrigin()).str();
  }
  d["kernel"] = py::none();
  if (auto region = dyn_cast<RegionOp>(added.op))
    if (std::optional<llvm::StringRef> kernel = region.getKernel())
      d["kernel"] = py::str(kernel->data(), kernel->size());
  auto args = added.op->getAttrOfType<DictionaryAttr>("args");
  d["args"] = args ? printed(Attribute(args)) : py::str();
  d["operands"] = added.operands;
  py::list types;
  for (Type type : added.op->getResultTypes())
    types.append(printed(type));
  d["types"] = types;
  d["first_result"] = added.firstResult;
  d["backward"] = isBackward(added.op);
  return d;
}

py::dict mlir::mp::python::editsToPython(const Edits &edits, const Graph &) {
  py::dict d;
  py::list rewired, added;
  Printed printed;
  for (const Edits::Rewired &r : edits.rewired)
    rewired.append(py::make_tuple(r.node, r.position, r.value));
  for (const Edits::Added &a : edits.added)
    added.append(addedToPython(a, printed));
  d["erased"] = edits.erased;
  d["retyped"] = edits.retyped;
  d["rewired"] = rewired;
  d["added"] = added;
  d["outputs"] = edits.outputs;
  return d;
}

static py::object attributeToPython(Attribute attr) {
  if (auto text = dyn_cast<StringAttr>(attr))
    return py::str(text.getValue().str());
  if (auto number = dyn_cast<IntegerAttr>(attr))
    return py::int_(number.getInt());
  return py::str(printed(attr));
}

py::list mlir::mp::python::rewritesToPython(ModuleOp module) {
  py::list rewrites;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto record = func->getAttrOfType<ArrayAttr>(MPDialect::kRewritesAttrName);
    if (!record)
      continue;
    for (auto entry : record.getAsRange<DictionaryAttr>()) {
      py::dict d;
      for (NamedAttribute attr : entry)
        d[py::str(attr.getName().str())] = attributeToPython(attr.getValue());
      rewrites.append(d);
    }
  }
  return rewrites;
}
