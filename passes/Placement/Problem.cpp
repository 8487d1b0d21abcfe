//===- Problem.cpp - which type each stored value gets --------------------===//

#include "passes/Placement/Problem.h"
#include "passes/Placement/MinCut.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir::mp;

using Value = PlacementProblem::Value;
using Port = PlacementProblem::Port;
using Call = PlacementProblem::Call;
using Producer = PlacementProblem::Producer;
using Assignment = PlacementProblem::Assignment;
using Node = MinCut::Node;

int PlacementProblem::addValue(const Value &value) {
  values.push_back(value);
  return values.size() - 1;
}

int PlacementProblem::addPort(const Port &port) {
  ports.push_back(port);
  return ports.size() - 1;
}

int PlacementProblem::addCall(const Call &call) {
  calls.push_back(call);
  return calls.size() - 1;
}

static int64_t noiseCost(const Port &port, double noisePrice) {
  double cost = port.noise * noisePrice;
  // Beyond this, the price is a refusal.
  return std::llround(std::min(cost, double(MinCut::kInfinite) / 1024));
}

namespace {
/// Reads of one kernel of one value.
struct Reads {
  int64_t high = 0, low = 0;
};
struct KernelReads : Reads {
  llvm::SmallVector<Node, 2> ports;
};
using Kernels = llvm::MapVector<std::pair<int, int>, KernelReads>;

/// The graph whose cuts are the assignments: High is the source's side.
class CutBuilder {
public:
  CutBuilder(const PlacementProblem &problem, double noisePrice)
      : problem(problem), noisePrice(noisePrice) {
    for (const Call &call : problem.getCalls())
      calls.push_back(addCall(call));
    for (const Value &value : problem.getValues())
      addValue(value);
    for (const Port &port : problem.getPorts())
      ports.push_back(addPort(port));
    for (const auto &[kernel, reads] : kernels)
      payReads(reads);
  }

  /// Fixes what has `storage` in another solution.
  void fixAll(const Assignment &known, Storage storage) {
    auto fixEach = [&](llvm::ArrayRef<Node> nodes,
                       llvm::ArrayRef<Storage> choices) {
      for (auto [node, choice] : llvm::zip_equal(nodes, choices))
        if (node >= 0 && choice == storage)
          fix(node, storage);
    };
    fixEach(calls, known.calls);
    fixEach(ports, known.ports);
    fixEach(results, known.results);
  }

  std::optional<Assignment> solve() {
    Assignment result;
    result.cost = cut.solve();
    if (result.cost >= MinCut::kInfinite)
      return std::nullopt;
    for (Node call : calls)
      result.calls.push_back(sideOf(call));
    for (Node port : ports)
      result.ports.push_back(sideOf(port));
    for (Node node : results)
      result.results.push_back(node < 0 ? Storage::High : sideOf(node));
    return result;
  }

private:
  Storage sideOf(Node node) const {
    return cut.isOnSourceSide(node) ? Storage::High : Storage::Low;
  }

  void fix(Node node, std::optional<Storage> storage) {
    if (storage == Storage::High)
      cut.addEdge(MinCut::kSource, node, MinCut::kInfinite);
    if (storage == Storage::Low)
      cut.addEdge(node, MinCut::kSink, MinCut::kInfinite);
  }

  void payIfHigh(Node node, int64_t cost) {
    cut.addEdge(node, MinCut::kSink, cost);
  }
  void payIfLow(Node node, int64_t cost) {
    cut.addEdge(MinCut::kSource, node, cost);
  }
  /// `a` High makes `b` High.
  void implyHigh(Node a, Node b) { cut.addEdge(a, b, MinCut::kInfinite); }

  Node addCall(const Call &call) {
    Node node = cut.addNode();
    fix(node, call.fixed);
    payIfHigh(node, call.high);
    payIfLow(node, call.low);
    return node;
  }

  /// Two nodes for each value: one is High if a High copy is wanted, the other
  /// is Low if a Low copy is.
  void addValue(const Value &value) {
    Node wantsHigh = cut.addNode(), wantsLow = cut.addNode();
    wanted.push_back({wantsHigh, wantsLow});
    Node result = -1;
    switch (value.producer) {
    case Producer::Fused:
      payIfHigh(wantsHigh, value.storeHigh);
      payIfLow(wantsLow, value.storeLow);
      break;
    case Producer::Input:
      result = cut.addNode();
      fix(result, value.given);
      break;
    case Producer::External:
      result = value.hasFreeResult ? cut.addNode() : calls[value.owner];
      // What was computed in High is not rounded by the call.
      if (value.hasFreeResult)
        implyHigh(calls[value.owner], result);
      if (value.isPinned)
        fix(result, Storage::High);
      payIfHigh(result, value.storeHigh);
      payIfLow(result, value.storeLow);
      break;
    }
    results.push_back(result);
    if (result >= 0) {
      cut.addEdge(wantsHigh, result, value.widen);
      cut.addEdge(result, wantsLow, value.narrow);
    }
    kept.push_back({-1, -1});
  }

  Node addPort(const Port &port) {
    Node node = port.call >= 0 ? calls[port.call] : cut.addNode();
    fix(node, port.fixed);
    payIfLow(node, noiseCost(port, noisePrice));
    implyHigh(node, wanted[port.value].high);
    implyHigh(wanted[port.value].low, node);
    if (port.followsResult && results[port.value] >= 0)
      implyHigh(results[port.value], node);
    KernelReads &reads = kernels[{port.value, port.kernel}];
    reads.high = std::max(reads.high, port.readHigh);
    reads.low = std::max(reads.low, port.readLow);
    reads.ports.push_back(node);
    if (port.isKept)
      keep(node, port.value);
    return node;
  }

  void keep(Node node, int value) {
    Pair &pair = kept[value];
    if (pair.high < 0) {
      pair = {cut.addNode(), cut.addNode()};
      payIfHigh(pair.high, problem.getValues()[value].keepHigh);
      payIfLow(pair.low, problem.getValues()[value].keepLow);
    }
    implyHigh(node, pair.high);
    implyHigh(pair.low, node);
  }

  void payReads(const KernelReads &reads) {
    Node high = cut.addNode(), low = cut.addNode();
    payIfHigh(high, reads.high);
    payIfLow(low, reads.low);
    for (Node port : reads.ports) {
      implyHigh(port, high);
      implyHigh(low, port);
    }
  }

  struct Pair {
    Node high, low;
  };

  const PlacementProblem &problem;
  double noisePrice;
  MinCut cut;
  std::vector<Node> calls, ports, results;
  std::vector<Pair> wanted, kept;
  Kernels kernels;
};
} // namespace

std::optional<Assignment>
PlacementProblem::solve(double noisePrice, Known lower, Known higher) const {
  CutBuilder cut(*this, noisePrice);
  for (const Assignment *known : lower)
    cut.fixAll(*known, Storage::High);
  for (const Assignment *known : higher)
    cut.fixAll(*known, Storage::Low);
  return cut.solve();
}

namespace {
/// Which types of a value someone reads.
struct Demand {
  bool high = false, low = false;

  void add(Storage storage) {
    high |= storage == Storage::High;
    low |= storage == Storage::Low;
  }
  int64_t cost(int64_t ifHigh, int64_t ifLow) const {
    return (high ? ifHigh : 0) + (low ? ifLow : 0);
  }
};
} // namespace

/// The cost of storing `value` for `demand`; std::nullopt if impossible.
static std::optional<int64_t> storeCost(const Value &value,
                                        const Demand &demand, Storage result,
                                        llvm::ArrayRef<Storage> calls) {
  if (value.producer == Producer::Fused)
    return demand.cost(value.storeHigh, value.storeLow);
  int64_t cost = 0;
  if (value.producer == Producer::Input) {
    if (result != value.given)
      return std::nullopt;
  } else {
    Storage call = calls[value.owner];
    if (value.hasFreeResult ? call == Storage::High && result == Storage::Low
                            : result != call)
      return std::nullopt;
    if (value.isPinned && result == Storage::Low)
      return std::nullopt;
    cost += result == Storage::High ? value.storeHigh : value.storeLow;
  }
  if (demand.high && result == Storage::Low)
    cost += value.widen;
  if (demand.low && result == Storage::High)
    cost += value.narrow;
  return cost;
}

std::optional<int64_t>
PlacementProblem::costOfValue(int number, llvm::ArrayRef<int> valuePorts,
                              const Assignment &assignment) const {
  const Value &value = values[number];
  Storage result = assignment.results[number];
  Demand demand, kept;
  llvm::SmallMapVector<int, std::pair<Demand, Reads>, 4> kernels;
  for (int i : valuePorts) {
    const Port &port = ports[i];
    Storage storage = assignment.ports[i];
    if (port.followsResult && storage == Storage::Low &&
        value.producer != Producer::Fused && result == Storage::High)
      return std::nullopt;
    demand.add(storage);
    if (port.isKept)
      kept.add(storage);
    auto &[kernelDemand, reads] = kernels[port.kernel];
    kernelDemand.add(storage);
    reads.high = std::max(reads.high, port.readHigh);
    reads.low = std::max(reads.low, port.readLow);
  }
  std::optional<int64_t> cost =
      storeCost(value, demand, result, assignment.calls);
  if (!cost)
    return std::nullopt;
  *cost += kept.cost(value.keepHigh, value.keepLow);
  for (const auto &[kernel, entry] : kernels)
    *cost += entry.first.cost(entry.second.high, entry.second.low);
  return cost;
}

std::optional<int64_t> PlacementProblem::costOf(const Assignment &assignment,
                                                double noisePrice) const {
  int64_t cost = 0;
  for (auto [call, storage] : llvm::zip_equal(calls, assignment.calls)) {
    if (call.fixed && *call.fixed != storage)
      return std::nullopt;
    cost += storage == Storage::High ? call.high : call.low;
  }
  std::vector<llvm::SmallVector<int, 4>> portsOf(values.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port &port = ports[i];
    Storage storage = assignment.ports[i];
    if (port.fixed && *port.fixed != storage)
      return std::nullopt;
    if (port.call >= 0 && assignment.calls[port.call] != storage)
      return std::nullopt;
    if (storage == Storage::Low)
      cost += noiseCost(port, noisePrice);
    portsOf[port.value].push_back(i);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    std::optional<int64_t> value = costOfValue(i, portsOf[i], assignment);
    if (!value)
      return std::nullopt;
    cost += *value;
  }
  return cost;
}

double PlacementProblem::noiseOf(const Assignment &assignment) const {
  double noise = 0;
  for (auto [port, storage] : llvm::zip_equal(ports, assignment.ports))
    if (storage == Storage::Low)
      noise += port.noise;
  return noise;
}

int64_t PlacementProblem::keptCostOf(const Assignment &assignment) const {
  std::vector<Demand> kept(values.size());
  for (auto [port, storage] : llvm::zip_equal(ports, assignment.ports))
    if (port.isKept)
      kept[port.value].add(storage);
  int64_t cost = 0;
  for (auto [value, demand] : llvm::zip_equal(values, kept))
    cost += demand.cost(value.keepHigh, value.keepLow);
  return cost;
}
