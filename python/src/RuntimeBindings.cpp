//===- RuntimeBindings.cpp - loss scaler and scaled update ----------------===//
//
// Memory belongs to PyTorch: arrays come as addresses and live as long as the
// tensors that the caller holds.
//
//===----------------------------------------------------------------------===//

#include "python/src/Bindings.h"
#include "runtime/LossScaler.h"
#include "runtime/Update.h"
#include "runtime/Update/Kernels.h"

#include <cmath>
#include <limits>
#include <variant>

using namespace mpopt;
using namespace mpopt::update;
namespace py = pybind11;

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// `torch_parallel_for` of PyTorch's stable C interface: its own thread pool.
using TorchParallelFor = int32_t (*)(int64_t begin, int64_t end, int64_t grain,
                                     Body body, void *context);
static TorchParallelFor torchParallelFor = nullptr;

static void parallelFor(int64_t count, Body body, void *context) {
  if (count < 2 || !torchParallelFor)
    serialFor(count, body, context);
  else
    torchParallelFor(0, count, 1, body, context);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};
} // namespace

static constexpr Named<Format> kFormats[] = {
    {"f32", Format::F32}, {"f16", Format::F16}, {"bf16", Format::BF16}};

static constexpr Named<Algorithm> kAlgorithms[] = {{"adam", Algorithm::Adam},
                                                   {"sgd", Algorithm::SGD},
                                                   {"lion", Algorithm::Lion}};

static constexpr Named<Rounding> kRoundings[] = {
    {"nearest", Rounding::Nearest}, {"stochastic", Rounding::Stochastic}};

static constexpr Named<AtFloor> kAtFloors[] = {{"hold", AtFloor::Hold},
                                               {"reset", AtFloor::Reset},
                                               {"fail", AtFloor::Fail}};

/// The value of that name; `what` is what the table lists.
template <typename Enum, size_t size>
static Enum valueOf(const Named<Enum> (&table)[size], const char *what,
                    std::string_view name) {
  std::string known;
  for (const Named<Enum> &row : table) {
    if (row.name == name)
      return row.value;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw py::value_error("unknown " + std::string(what) + " '" +
                        std::string(name) + "'; known: " + known);
}

template <typename Enum, size_t size>
static std::string_view nameOf(const Named<Enum> (&table)[size], Enum value) {
  for (const Named<Enum> &row : table)
    if (row.value == value)
      return row.name;
  return "";
}

//===----------------------------------------------------------------------===//
// The scaled update
//===----------------------------------------------------------------------===//

/// Memory of PyTorch comes as a number.
template <typename Pointer>
static Pointer pointerOf(uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<Pointer>(address);
}

/// An address and a format, at two places of a row.
static Array arrayAt(const py::tuple &row, size_t place) {
  auto address = row[place].cast<uintptr_t>();
  if (address == 0)
    return {};
  return {pointerOf<void *>(address),
          valueOf(kFormats, "format", row[place + 1].cast<std::string_view>())};
}

/// The order that `row` in _arrays.py documents.
static Tensor tensorOf(const py::tuple &row) {
  if (row.size() != 18)
    throw py::value_error("a tensor is described by 18 values");
  Tensor tensor;
  tensor.size = row[0].cast<size_t>();
  tensor.weightLow = pointerOf<uint16_t *>(row[1].cast<uintptr_t>());
  tensor.group = row[2].cast<uint32_t>();
  tensor.step = row[3].cast<double>();
  tensor.isFirst = row[4].cast<bool>();
  size_t place = 5;
  for (Array *array : {&tensor.weight, &tensor.gradient, &tensor.first,
                       &tensor.second, &tensor.largest, &tensor.copy}) {
    *array = arrayAt(row, place);
    place += 2;
  }
  tensor.number = row[place].cast<uint32_t>();
  return tensor;
}

static Hyperparameters hyperparametersOf(const py::dict &group) {
  Hyperparameters h;
  h.algorithm = valueOf(kAlgorithms, "algorithm",
                        group["algorithm"].cast<std::string_view>());
  h.learningRate = group["lr"].cast<double>();
  h.beta1 = group["beta1"].cast<double>();
  h.beta2 = group["beta2"].cast<double>();
  h.epsilon = group["eps"].cast<double>();
  h.weightDecay = group["weight_decay"].cast<double>();
  h.momentum = group["momentum"].cast<double>();
  h.dampening = group["dampening"].cast<double>();
  h.isDecayDecoupled = group["decoupled"].cast<bool>();
  h.isMaximized = group["maximize"].cast<bool>();
  h.isNesterov = group["nesterov"].cast<bool>();
  h.rounding = valueOf(kRoundings, "rounding",
                       group["rounding"].cast<std::string_view>());
  h.seed = group["seed"].cast<uint64_t>();
  return h;
}

namespace {
class Update {
public:
  Update(const py::list &rows, const py::list &hyperparameters,
         const std::string &name)
      : kernels(kernelsNamed(name)) {
    for (py::handle row : rows)
      tensors.push_back(tensorOf(row.cast<py::tuple>()));
    for (py::handle group : hyperparameters)
      groups.push_back(hyperparametersOf(group.cast<py::dict>()));
    for (const Tensor &tensor : tensors)
      check(tensor);
  }

  py::tuple measure(float inverse) const {
    Measured measured;
    {
      py::gil_scoped_release release;
      measured = measureGradients(tensors, inverse, kernels, parallelFor);
    }
    return py::make_tuple(measured.sumOfSquares, measured.infs, measured.nans,
                          measured.firstBad);
  }

  py::tuple apply(float multiplier, bool isSkipped,
                  bool clearsGradients) const {
    Applied applied;
    {
      py::gil_scoped_release release;
      applied =
          applyUpdate(tensors, groups, {multiplier, isSkipped, clearsGradients},
                      kernels, parallelFor);
    }
    return py::make_tuple(applied.castOverflows, applied.stalled,
                          applied.firstStalled);
  }

private:
  static const Kernels &kernelsNamed(const std::string &name) {
    if (name.empty())
      return bestKernels();
    const Kernels *found = findKernels(name.c_str());
    if (!found)
      throw py::value_error("this machine does not run the kernels '" + name +
                            "'");
    return *found;
  }

  void check(const Tensor &tensor) const {
    if (tensor.group >= groups.size())
      throw py::value_error("a tensor is in no group");
    bool isAdam = groups[tensor.group].algorithm == Algorithm::Adam;
    bool isLion = groups[tensor.group].algorithm == Algorithm::Lion;
    if (!tensor.weight || ((isAdam || isLion) && !tensor.first) ||
        (isAdam && !tensor.second))
      throw py::value_error("a tensor lacks a state");
    if (tensor.weightLow && tensor.weight.format != Format::BF16)
      throw py::value_error("a split master has a weight in bf16");
  }

  std::vector<Tensor> tensors;
  std::vector<Hyperparameters> groups;
  const Kernels &kernels;
};
} // namespace

//===----------------------------------------------------------------------===//
// The loss scaler
//===----------------------------------------------------------------------===//

namespace {
/// A figure of a rule, by the name that users know it by.
struct Figure {
  std::string_view name;
  std::variant<double ScalerRule::*, int32_t ScalerRule::*,
               AtFloor ScalerRule::*>
      member;
};
} // namespace

static constexpr Figure kFigures[] = {
    {"init_scale", &ScalerRule::initScale},
    {"growth_factor", &ScalerRule::growthFactor},
    {"backoff_factor", &ScalerRule::backoffFactor},
    {"growth_interval", &ScalerRule::growthInterval},
    {"min_scale", &ScalerRule::minScale},
    {"max_scale", &ScalerRule::maxScale},
    {"hysteresis", &ScalerRule::hysteresisSteps},
    {"at_floor", &ScalerRule::atFloor},
    {"floor_tolerance", &ScalerRule::floorTolerance},
};

static const Figure &figureNamed(std::string_view name) {
  for (const Figure &figure : kFigures)
    if (figure.name == name)
      return figure;
  throw py::value_error("a loss scaling rule has no '" + std::string(name) +
                        "'");
}

static py::object pythonOf(double value) { return py::float_(value); }
static py::object pythonOf(int32_t value) { return py::int_(value); }
static py::object pythonOf(AtFloor value) {
  return py::str(nameOf(kAtFloors, value));
}

[[noreturn]] static void throwBadFigure(const Figure &figure, const char *kind,
                                        py::handle value) {
  throw py::value_error(std::string(figure.name) + " must be " + kind +
                        ", not " + py::repr(value).cast<std::string>());
}

/// `PyFloat_AsDouble` takes what Python's float() takes, but for text.
static void setFrom(const Figure &figure, py::handle value, double &to) {
  double number = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throwBadFigure(figure, "a number", value);
  }
  to = number;
}

/// A whole number, which may come as a float: a count never meets a fraction.
static void setFrom(const Figure &figure, py::handle value, int32_t &to) {
  double number = 0.0;
  setFrom(figure, value, number);
  if (!(std::trunc(number) == number &&
        std::abs(number) <= std::numeric_limits<int32_t>::max()))
    throwBadFigure(figure, "a whole number", value);
  to = int32_t(number);
}

static void setFrom(const Figure &figure, py::handle value, AtFloor &to) {
  to = valueOf(kAtFloors, "at_floor", py::str(value).cast<std::string>());
}

namespace {
/// A rule with its state.
class Scaler {
public:
  Scaler(const std::string &name, const py::kwargs &figures) {
    const ScalerRule *found = findScalerRule(name);
    if (!found)
      throw py::value_error("no loss scaling rule '" + name + "'");
    rule = *found;
    set(figures);
    state = initialState(rule);
  }

  /// Changes figures, or throws and changes none.
  void set(const py::kwargs &figures) {
    ScalerRule before = rule;
    try {
      for (auto [key, value] : figures)
        setOne(key.cast<std::string>(), value);
      std::string wrong = whatIsWrong(rule);
      if (!wrong.empty())
        throw py::value_error(wrong);
    } catch (...) {
      rule = before;
      throw;
    }
  }

  void update(uint32_t flags) { updateScale(rule, flags, state); }

  py::dict figures() const {
    py::dict d;
    for (const Figure &figure : kFigures)
      d[py::str(figure.name)] = std::visit(
          [&](auto member) { return pythonOf(rule.*member); }, figure.member);
    return d;
  }

  ScalerRule rule;
  ScalerState state;

private:
  void setOne(const std::string &name, py::handle value) {
    const Figure &figure = figureNamed(name);
    std::visit([&](auto member) { setFrom(figure, value, rule.*member); },
               figure.member);
  }
};
} // namespace

static std::vector<std::string> ruleNames() {
  std::vector<std::string> names;
  auto [begin, end] = scalerRules();
  for (const ScalerRule *rule = begin; rule != end; ++rule)
    names.emplace_back(rule->name);
  return names;
}

void mlir::mp::python::bindRuntime(py::module_ &m) {
  m.def("set_parallel_for", [](uintptr_t address) {
    torchParallelFor = pointerOf<TorchParallelFor>(address);
  });
  m.def("kernels", [] { return bestKernels().name; });
  m.def("clip_factor", clipFactor);
  m.def("scaler_rules", ruleNames);

  py::class_<Update>(m, "Update")
      .def(py::init<const py::list &, const py::list &, const std::string &>(),
           py::arg("tensors"), py::arg("groups"), py::arg("kernels") = "")
      .def("measure", &Update::measure, py::arg("inverse"))
      .def("apply", &Update::apply, py::arg("multiplier"), py::arg("skipped"),
           py::arg("clear_gradients"));

  auto field = [](auto ScalerState::*member) {
    return [member](const Scaler &scaler) { return scaler.state.*member; };
  };
  py::class_<Scaler>(m, "LossScaler")
      .def(py::init<const std::string &, const py::kwargs &>())
      .def("set", &Scaler::set)
      .def("update", &Scaler::update, py::arg("flags"))
      .def("figures", &Scaler::figures)
      .def_property_readonly(
          "inverse",
          [](const Scaler &scaler) { return scaler.state.inverse(); })
      .def_property_readonly("failed",
                             [](const Scaler &scaler) {
                               return (scaler.state.status &
                                       ScalerState::Failed) != 0;
                             })
      .def_property_readonly("at_floor",
                             [](const Scaler &scaler) {
                               return (scaler.state.status &
                                       ScalerState::HitFloor) != 0;
                             })
      .def_property(
          "scale", field(&ScalerState::scale),
          [](Scaler &scaler, float value) { scaler.state.scale = value; })
      .def_property("growth_tracker", field(&ScalerState::growthTracker),
                    [](Scaler &scaler, int32_t value) {
                      scaler.state.growthTracker = value;
                    })
      .def_property("hysteresis_left", field(&ScalerState::hysteresisLeft),
                    [](Scaler &scaler, int32_t value) {
                      scaler.state.hysteresisLeft = value;
                    })
      .def_property_readonly("resets", field(&ScalerState::resets))
      .def_property_readonly("applied", field(&ScalerState::applied))
      .def_property_readonly("skipped", field(&ScalerState::skipped))
      .def_property_readonly("skipped_in_a_row",
                             field(&ScalerState::skippedInARow))
      .def_property_readonly("inf_steps", field(&ScalerState::infSteps))
      .def_property_readonly("nan_steps", field(&ScalerState::nanSteps));
}
