//===- Parts.cpp - parts of a placement problem ---------------------------===//

#include "passes/Placement/Parts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::mp;
using llvm::ArrayRef;

using Assignment = PlacementProblem::Assignment;

namespace {
/// Numbers of the parts of values and calls that ports connect.
class Connections {
public:
  explicit Connections(const PlacementProblem &problem)
      : numValues(problem.getValues().size()),
        sets(numValues + problem.getCalls().size()) {
    for (size_t i = 0; i < sets.size(); ++i)
      sets[i] = i;
    for (auto [i, value] : llvm::enumerate(problem.getValues()))
      if (value.owner >= 0)
        join(i, numValues + value.owner);
    for (const PlacementProblem::Port &port : problem.getPorts())
      if (port.call >= 0)
        join(port.value, numValues + port.call);
  }

  int ofValue(int value) { return find(value); }
  int ofCall(int call) { return find(numValues + call); }

private:
  int find(int item) {
    while (sets[item] != item)
      item = sets[item] = sets[sets[item]];
    return item;
  }
  void join(int a, int b) { sets[find(a)] = find(b); }

  int numValues;
  std::vector<int> sets;
};
} // namespace

std::vector<PlacementPart> mlir::mp::takeApart(const PlacementProblem &whole) {
  Connections connections(whole);
  llvm::DenseMap<int, int> numbers;
  std::vector<PlacementPart> parts;
  auto partOf = [&](int set) -> PlacementPart & {
    auto [number, isNew] = numbers.try_emplace(set, parts.size());
    if (isNew)
      parts.emplace_back();
    return parts[number->second];
  };
  std::vector<int> local(whole.getCalls().size()), values;
  for (auto [i, call] : llvm::enumerate(whole.getCalls())) {
    PlacementPart &part = partOf(connections.ofCall(i));
    local[i] = part.problem.addCall(call);
    part.calls.push_back(i);
  }
  for (auto [i, value] : llvm::enumerate(whole.getValues())) {
    PlacementPart &part = partOf(connections.ofValue(i));
    PlacementProblem::Value copy = value;
    if (copy.owner >= 0)
      copy.owner = local[copy.owner];
    values.push_back(part.problem.addValue(copy));
    part.values.push_back(i);
  }
  for (auto [i, port] : llvm::enumerate(whole.getPorts())) {
    PlacementPart &part = partOf(connections.ofValue(port.value));
    PlacementProblem::Port copy = port;
    copy.value = values[port.value];
    if (copy.call >= 0)
      copy.call = local[copy.call];
    part.problem.addPort(copy);
    part.ports.push_back(i);
    part.isNoisy |= port.noise > 0 && !port.fixed;
  }
  return parts;
}

static void scatter(ArrayRef<Storage> from, ArrayRef<int> numbers,
                    std::vector<Storage> &to) {
  for (auto [storage, number] : llvm::zip_equal(from, numbers))
    to[number] = storage;
}

static std::vector<Storage> gather(ArrayRef<Storage> from,
                                   ArrayRef<int> numbers) {
  std::vector<Storage> to;
  for (int number : numbers)
    to.push_back(from[number]);
  return to;
}

void PlacementPart::takeFrom(const Assignment &whole) {
  assignment.calls = gather(whole.calls, calls);
  assignment.results = gather(whole.results, values);
  assignment.ports = gather(whole.ports, ports);
}

void PlacementPart::putInto(Assignment &whole) const {
  scatter(assignment.calls, calls, whole.calls);
  scatter(assignment.results, values, whole.results);
  scatter(assignment.ports, ports, whole.ports);
}
