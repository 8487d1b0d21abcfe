//===- StoredReasons.cpp - why a value has its type -----------------------===//

#include "passes/Report/StoredReasons.h"
#include "dialect/Graph/Graph.h"
#include "passes/Report/CastReport.h"
#include "passes/Report/Unpinning.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

using Port = Placement::Port;
using Stored = Placement::StoredValue;
using Problem = PlacementProblem;

StringRef mlir::mp::stringifyStoredReason(StoredReason reason) {
  static constexpr StringLiteral names[] = {
      "rounded", "traced",   "call",     "pinned", "reader",
      "result",  "observed", "numerics", "noise",  "copies"};
  return names[unsigned(reason)];
}

std::string mlir::mp::storedText(const StoredEntry &entry) {
  std::string text = entry.why;
  std::string error = errorText(std::sqrt(1 + entry.noise));
  if (entry.reason == StoredReason::Rounded) {
    // Noise too small to show is noise all the same.
    text += entry.noise > 0 ? ", error " + error : ", no error by the model";
    if (entry.saves > 0)
      text += ", saves " + formatBytes(entry.saves);
    return text;
  }
  if (entry.isSaved)
    text += ", saved for backward";
  if (entry.saves > 0) {
    text += "; " + entry.half + " would save " + formatBytes(entry.saves);
    if (entry.reason == StoredReason::Noise)
      text +=
          " at an error " + error + ", which the price of error does not allow";
  }
  return text;
}

namespace {
/// Describes one value of a solution.
class Describer {
public:
  Describer(const PlacementSetup &setup, const Solution &solution)
      : placement(setup.getPlacement()), problem(placement.getProblem()),
        assignment(solution.assignment) {
    llvm::raw_string_ostream(half) << placement.getHalfType();
    for (const Placement::OpenCall &open : placement.getOpenCalls())
      openCalls[open.op] = &open;
  }

  StoredEntry describe(const Stored &stored);

private:
  bool isLow(const Port &port) const {
    return assignment.ports[port.port] == Storage::Low;
  }
  /// True if the placement adds a rounding before this reader, or could.
  static bool isAddable(const Port &port, Value root) {
    return !port.isRounded && port.why == PortReason::Open &&
           cast<RankedTensorType>(root.getType()).getElementType().isF32();
  }
  bool isCall(Value root) const {
    return kernelRoleOf(root.getDefiningOp()) == KernelRole::External;
  }

  void measure(const Stored &stored, StoredEntry &entry) const;
  int64_t costOfChange(const Stored &stored, Storage other,
                       function_ref<bool(const Port &)> isChanged);
  void explainHalf(const Stored &stored, StoredEntry &entry);
  void explainWide(const Stored &stored, StoredEntry &entry);
  void explainCall(const Stored &stored, StoredEntry &entry);
  bool explainFixed(const Stored &stored, StoredEntry &entry);
  void explainPins(const Stored &stored, const Port &port, StoredEntry &entry);
  void explainOpen(const Stored &stored, StoredEntry &entry);
  double noiseOf(const Stored &stored,
                 function_ref<bool(const Port &)> isCounted) const;

  const Placement &placement;
  const Problem &problem;
  Problem::Assignment assignment; ///< changed and restored by costOfChange
  std::string half;
  llvm::DenseMap<Operation *, const Placement::OpenCall *> openCalls;
};
} // namespace

/// Types and bytes in memory.
void Describer::measure(const Stored &stored, StoredEntry &entry) const {
  bool hasHigh = false, hasLow = false;
  for (const Port &port : stored.ports)
    (isLow(port) ? hasLow : hasHigh) = true;
  if (problem.getValues()[stored.value].producer == Problem::Producer::External)
    (assignment.results[stored.value] == Storage::Low ? hasLow : hasHigh) =
        true;
  int64_t elements = estimatedElements(stored.root.getType());
  entry.bytes = (hasHigh ? 4 * elements : 0) + (hasLow ? 2 * elements : 0);
  entry.types = !hasLow ? "f32" : hasHigh ? "f32 and " + half : half;
  entry.isSaved = llvm::any_of(stored.ports, [&](const Port &port) {
    return problem.getPorts()[port.port].isKept;
  });
}

/// What the value would cost more if the `isChanged` ports had type `other`.
int64_t Describer::costOfChange(const Stored &stored, Storage other,
                                function_ref<bool(const Port &)> isChanged) {
  SmallVector<int, 4> ports;
  SmallVector<Storage, 4> before;
  for (const Port &port : stored.ports) {
    ports.push_back(port.port);
    before.push_back(assignment.ports[port.port]);
  }
  auto now = problem.costOfValue(stored.value, ports, assignment);
  for (const Port &port : stored.ports)
    if (isChanged(port))
      assignment.ports[port.port] = other;
  auto then = problem.costOfValue(stored.value, ports, assignment);
  for (auto [port, storage] : llvm::zip_equal(ports, before))
    assignment.ports[port] = storage;
  return now && then ? *then - *now : 0;
}

double Describer::noiseOf(const Stored &stored,
                          function_ref<bool(const Port &)> isCounted) const {
  double noise = 0;
  for (const Port &port : stored.ports)
    if (isCounted(port))
      noise += problem.getPorts()[port.port].noise;
  double total = placement.getNoise().total();
  return total > 0 ? noise / total : 0;
}

void Describer::explainCall(const Stored &stored, StoredEntry &entry) {
  entry.reason = StoredReason::Call;
  bool isLow = assignment.results[stored.value] == Storage::Low;
  auto open = openCalls.find(stored.root.getDefiningOp());
  if (open != openCalls.end() &&
      assignment.calls[open->second->call] == Storage::Low)
    entry.why = "computed in " + half + ": " + open->second->cost.verdict;
  else if (isLow)
    entry.why = entry.op + " computes it in " + half + ", as traced";
  else if (problem.getValues()[stored.value].hasFreeResult)
    entry.why = entry.op + " stores its f32 accumulator";
  else
    entry.why = entry.op + " computes it in f32";
}

void Describer::explainHalf(const Stored &stored, StoredEntry &entry) {
  auto isAdded = [&](const Port &port) {
    return isLow(port) && isAddable(port, stored.root);
  };
  if (isCall(stored.root))
    return explainCall(stored, entry);
  if (llvm::any_of(stored.ports, isAdded)) {
    entry.reason = StoredReason::Rounded;
    entry.why = entry.isSaved ? "saved for backward" : "kept between kernels";
    entry.noise = noiseOf(stored, isAdded);
    entry.saves = costOfChange(stored, Storage::High, isAdded);
    return;
  }
  entry.reason = StoredReason::Traced;
  entry.why = "rounded as traced";
}

void Describer::explainPins(const Stored &stored, const Port &port,
                            StoredEntry &entry) {
  entry.reason = StoredReason::Pinned;
  SmallVector<StringRef, 2> rules;
  std::string by;
  for (auto [op, pin] : pinsAt(stored, port)) {
    if (llvm::is_contained(rules, pin.getRule()))
      continue;
    rules.push_back(pin.getRule());
    bool isOwn = op == stored.root.getDefiningOp();
    by += (by.empty() ? "" : " and ") + pin.getRule().str() + " (" +
          (isOwn ? "its own result" : "feeds " + operatorName(op)) + ")";
  }
  entry.rule = rules.empty() ? "" : rules.front().str();
  entry.why = "pinned by " + by;
  auto isPinned = [&](const Port &other) {
    return !isLow(other) && other.why == PortReason::Pinned;
  };
  entry.saves =
      std::max<int64_t>(0, -costOfChange(stored, Storage::Low, isPinned));
  entry.noise = noiseOf(stored, isPinned);
}

/// The first reader that must get f32, by the order in which reasons are told.
bool Describer::explainFixed(const Stored &stored, StoredEntry &entry) {
  auto firstOf = [&](PortReason why) -> const Port * {
    auto found = llvm::find_if(stored.ports, [&](const Port &port) {
      return port.why == why && !isLow(port);
    });
    return found == stored.ports.end() ? nullptr : found;
  };
  if (const Port *port = firstOf(PortReason::Pinned)) {
    explainPins(stored, *port, entry);
    return true;
  }
  auto reader = [](const Port *port) {
    return operatorName(port->use->getOwner());
  };
  if (const Port *port = firstOf(PortReason::Call)) {
    entry.reason = StoredReason::Reader;
    entry.why = "read by " + reader(port) + ", which stays f32";
  } else if (const Port *port = firstOf(PortReason::External)) {
    entry.reason = StoredReason::Reader;
    entry.why = "read by " + reader(port) + " as f32, as traced";
  } else if (firstOf(PortReason::Result)) {
    entry.reason = StoredReason::Result;
    entry.why = "a result of the graph, which its caller gets in f32";
  } else if (const Port *port = firstOf(PortReason::Observed)) {
    entry.reason = StoredReason::Observed;
    entry.why = reader(port) + " would show the rounding";
  } else if (firstOf(PortReason::Budget)) {
    entry.reason = StoredReason::Numerics;
    entry.why = "its module's budget has no room for the rounding";
  } else if (firstOf(PortReason::Freedom)) {
    entry.reason = StoredReason::Numerics;
    entry.why = "the numerics add no rounding here";
  } else {
    return false;
  }
  return true;
}

void Describer::explainOpen(const Stored &stored, StoredEntry &entry) {
  auto isOpen = [&](const Port &port) {
    return !isLow(port) && isAddable(port, stored.root);
  };
  entry.saves = -costOfChange(stored, Storage::Low, isOpen);
  entry.noise = noiseOf(stored, isOpen);
  entry.reason = entry.saves > 0 ? StoredReason::Noise : StoredReason::Copies;
  entry.why = entry.saves > 0 ? "its rounding reaches the results"
                              : "a " + half + " copy would save no bytes";
}

void Describer::explainWide(const Stored &stored, StoredEntry &entry) {
  if (explainFixed(stored, entry))
    return;
  if (isCall(stored.root))
    return explainCall(stored, entry);
  explainOpen(stored, entry);
}

StoredEntry Describer::describe(const Stored &stored) {
  Operation *producer = stored.root.getDefiningOp();
  StoredEntry entry;
  entry.region = modulePathOf(producer->getLoc()).str();
  entry.op = operatorName(producer);
  entry.shape = shapeText(cast<RankedTensorType>(stored.root.getType()));
  entry.source = sourceText(producer->getLoc());
  entry.half = half;
  entry.node = stemOf(producer->getLoc());
  entry.isBackward = isBackward(producer);
  measure(stored, entry);
  if (entry.types == "f32")
    explainWide(stored, entry);
  else
    explainHalf(stored, entry);
  if (entry.types == "f32 and " + half) {
    StoredEntry wide = entry;
    if (explainFixed(stored, wide))
      entry.why += "; in f32 too: " + wide.why;
  }
  return entry;
}

std::vector<StoredEntry> mlir::mp::describeStored(const PlacementSetup &setup,
                                                  const Solution &solution) {
  Describer describer(setup, solution);
  std::vector<StoredEntry> entries;
  for (const Stored &stored : setup.getPlacement().getValues())
    if (stored.root.getDefiningOp())
      entries.push_back(describer.describe(stored));
  llvm::sort(entries, [](const StoredEntry &a, const StoredEntry &b) {
    return std::tie(b.bytes, a.node, a.region, a.op) <
           std::tie(a.bytes, b.node, b.region, b.op);
  });
  return entries;
}
