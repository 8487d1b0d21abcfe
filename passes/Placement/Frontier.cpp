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
  auto [found, isNew] = solved.try_emplace(noisePrice);
  if (!isNew)
    return &found->second;
  auto assignment = problem.solve(noisePrice);
  if (!assignment) {
    solved.erase(found);
    return nullptr;
  }
  Solution &solution = found->second;
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
