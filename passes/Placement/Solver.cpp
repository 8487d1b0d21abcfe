//===- Solver.cpp - the best placement within a noise budget --------------===//

#include "passes/Placement/Solver.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cmath>

using namespace mlir::mp;
using llvm::ArrayRef;
using llvm::SmallVector;

using Assignment = PlacementProblem::Assignment;

namespace {
/// A part of a problem that shares nothing with the others, and its solution.
struct Part {
  PlacementProblem problem;
  SmallVector<int, 1> values, calls; ///< numbers in the whole
  SmallVector<int, 2> ports;
  bool isNoisy = false;
  Assignment assignment;
};

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

/// Takes a problem apart. Most values share no call with another one, so that
/// each is a small cut of its own.
static std::vector<Part> takeApart(const PlacementProblem &whole) {
  Connections connections(whole);
  llvm::DenseMap<int, int> numbers;
  std::vector<Part> parts;
  auto partOf = [&](int set) -> Part & {
    auto [number, isNew] = numbers.try_emplace(set, parts.size());
    if (isNew)
      parts.emplace_back();
    return parts[number->second];
  };
  std::vector<int> local(whole.getCalls().size()), values;
  for (auto [i, call] : llvm::enumerate(whole.getCalls())) {
    Part &part = partOf(connections.ofCall(i));
    local[i] = part.problem.addCall(call);
    part.calls.push_back(i);
  }
  for (auto [i, value] : llvm::enumerate(whole.getValues())) {
    Part &part = partOf(connections.ofValue(i));
    PlacementProblem::Value copy = value;
    if (copy.owner >= 0)
      copy.owner = local[copy.owner];
    values.push_back(part.problem.addValue(copy));
    part.values.push_back(i);
  }
  for (auto [i, port] : llvm::enumerate(whole.getPorts())) {
    Part &part = partOf(connections.ofValue(port.value));
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

namespace {
/// Solves the parts of a problem at one price of noise after the other.
class Search {
public:
  explicit Search(const PlacementProblem &whole)
      : whole(whole), parts(takeApart(whole)) {}

  /// False if what is fixed contradicts itself.
  bool solveFree() {
    for (Part &part : parts) {
      auto assignment = part.problem.solve(0);
      if (!assignment)
        return false;
      part.assignment = std::move(*assignment);
      if (part.isNoisy)
        open.push_back(&part);
    }
    return true;
  }

  double noise() const {
    double sum = 0;
    for (const Part &part : parts)
      sum += part.problem.noiseOf(part.assignment);
    return sum;
  }

  /// Finds the least price at which the noise is within `budget`, between two
  /// prices. Roundings only go as the price rises: a part that is the same at
  /// both ends of the bracket is the same within.
  double raisePrice(double low, double high, double budget) {
    std::vector<Assignment> cheap, dear = solveOpen(high);
    for (Part *part : open)
      cheap.push_back(part->assignment);
    double closed = noise() - noiseOfOpen(cheap);
    // A port can save more than its own bytes, a launch or what is kept.
    while (closed + noiseOfOpen(dear) > budget && high < PriceRange::kHighest) {
      high *= 64;
      dear = solveOpen(high);
    }
    for (int step = 0; step < PriceRange::kSteps; ++step) {
      closed += close(cheap, dear);
      double middle = std::sqrt(low * high);
      std::vector<Assignment> solved = solveOpen(middle);
      bool fits = closed + noiseOfOpen(solved) <= budget;
      (fits ? high : low) = middle;
      (fits ? dear : cheap) = std::move(solved);
    }
    for (auto [part, assignment] : llvm::zip_equal(open, dear))
      part->assignment = std::move(assignment);
    return high;
  }

  Solution solution(double price) const {
    Solution result;
    Assignment &all = result.assignment;
    all.calls.resize(whole.getCalls().size());
    all.results.resize(whole.getValues().size());
    all.ports.resize(whole.getPorts().size());
    for (const Part &part : parts) {
      scatter(part.assignment.calls, part.calls, all.calls);
      scatter(part.assignment.results, part.values, all.results);
      scatter(part.assignment.ports, part.ports, all.ports);
    }
    all.cost = *whole.costOf(all, price);
    result.noise = whole.noiseOf(all);
    result.bytes = *whole.costOf(all, 0);
    result.noisePrice = price;
    return result;
  }

private:
  static void scatter(ArrayRef<Storage> from, ArrayRef<int> numbers,
                      std::vector<Storage> &to) {
    for (auto [storage, number] : llvm::zip_equal(from, numbers))
      to[number] = storage;
  }

  std::vector<Assignment> solveOpen(double price) const {
    std::vector<Assignment> result;
    result.reserve(open.size());
    for (Part *part : open)
      result.push_back(*part->problem.solve(price));
    return result;
  }

  double noiseOfOpen(ArrayRef<Assignment> assignments) const {
    double sum = 0;
    for (auto [part, assignment] : llvm::zip_equal(open, assignments))
      sum += part->problem.noiseOf(assignment);
    return sum;
  }

  /// Drops the parts that both ends of the bracket agree on; their noise.
  double close(std::vector<Assignment> &cheap, std::vector<Assignment> &dear) {
    double sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      if (cheap[i].ports == dear[i].ports) {
        sum += open[i]->problem.noiseOf(dear[i]);
        open[i]->assignment = std::move(dear[i]);
        continue;
      }
      open[kept] = open[i];
      if (kept != i) {
        cheap[kept] = std::move(cheap[i]);
        dear[kept] = std::move(dear[i]);
      }
      ++kept;
    }
    open.resize(kept);
    cheap.resize(kept);
    dear.resize(kept);
    return sum;
  }

  const PlacementProblem &whole;
  std::vector<Part> parts;
  std::vector<Part *> open; ///< those that a price can change
};
} // namespace

PriceRange::PriceRange(const PlacementProblem &problem) {
  for (const PlacementProblem::Port &port : problem.getPorts())
    if (port.noise > 0) {
      low = std::min(low, 1 / port.noise);
      high = std::max(high, 64 * (double(port.readHigh) + 1) / port.noise);
    }
}

std::optional<Solution> mlir::mp::solveWithin(const PlacementProblem &problem,
                                              double budget) {
  Search search(problem);
  if (!search.solveFree())
    return std::nullopt;
  if (search.noise() <= budget)
    return search.solution(0);
  PriceRange prices(problem);
  return search.solution(search.raisePrice(prices.low, prices.high, budget));
}
