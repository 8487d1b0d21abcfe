//===- Frontier.cpp - bytes against noise ---------------------------------===//

#include "passes/Placement/Frontier.h"

#include <cmath>

using namespace mlir::mp;

// The price of noise is found to 1 part in 2^kSteps of its logarithm's range.
static constexpr int kSteps = 10;

Frontier::Frontier(const PlacementProblem &problem) : problem(problem) {
  for (const PlacementProblem::Port &port : problem.getPorts())
    if (port.noise > 0) {
      double bytes = double(port.readHigh) + 1;
      lowest = std::min(lowest, 1 / port.noise);
      highest = std::max(highest, 64 * bytes / port.noise);
    }
}

const Solution *Frontier::at(double noisePrice) {
  auto next = solved.lower_bound(noisePrice);
  if (next != solved.end() && next->first == noisePrice)
    return &next->second;
  auto choices = [](const auto &entry) { return &entry.second.assignment; };
  auto assignment = problem.solve(
      noisePrice, next == solved.begin() ? nullptr : choices(*std::prev(next)),
      next == solved.end() ? nullptr : choices(*next));
  if (!assignment)
    return nullptr;
  Solution &solution = solved[noisePrice];
  solution.noise = problem.noiseOf(*assignment);
  solution.bytes = *problem.costOf(*assignment, 0);
  solution.noisePrice = noisePrice;
  solution.assignment = std::move(*assignment);
  return &solution;
}

const Solution *Frontier::within(double budget) {
  const Solution *free = at(0);
  if (!free || free->noise <= budget)
    return free;
  double low = lowest, high = highest;
  const Solution *best = at(high);
  for (int step = 0; step < kSteps; ++step) {
    double middle = std::sqrt(low * high);
    const Solution *solution = at(middle);
    bool fits = solution->noise <= budget;
    (fits ? high : low) = middle;
    if (fits)
      best = solution;
  }
  return best;
}
