//===- Frontier.cpp - bytes against noise ---------------------------------===//

#include "passes/Placement/Frontier.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

Frontier::Frontier(const PlacementProblem &problem, const Frontier *narrower)
    : problem(problem), narrower(narrower), prices(problem) {}

const Solution *Frontier::at(double noisePrice) {
  auto next = solved.lower_bound(noisePrice);
  if (next != solved.end() && next->first == noisePrice)
    return &next->second;
  SmallVector<const PlacementProblem::Assignment *, 2> lower, higher;
  if (next != solved.begin())
    lower.push_back(&std::prev(next)->second.assignment);
  if (next != solved.end())
    higher.push_back(&next->second.assignment);
  if (narrower)
    if (auto known = narrower->solved.lower_bound(noisePrice);
        known != narrower->solved.end())
      higher.push_back(&known->second.assignment);
  auto assignment = problem.solve(noisePrice, lower, higher);
  if (!assignment)
    return nullptr;
  Solution &solution = solved[noisePrice];
  solution.noise = problem.noiseOf(*assignment);
  solution.bytes = *problem.costOf(*assignment, 0);
  solution.noisePrice = noisePrice;
  solution.assignment = std::move(*assignment);
  return &solution;
}

/// The cheapest solution that fits, at a price of `low` to `high`; `low` is not
/// enough and `high` is.
const Solution *Frontier::search(double budget, double low, double high,
                                 int steps) {
  const Solution *best = at(high);
  for (int step = 0; step < steps; ++step) {
    double middle = std::sqrt(low * high);
    const Solution *solution = at(middle);
    bool fits = solution->noise <= budget;
    (fits ? high : low) = middle;
    if (fits)
      best = solution;
  }
  return best;
}

const Solution *Frontier::within(double budget) {
  const Solution *free = at(0);
  if (!free || free->noise <= budget)
    return free;
  double high = prices.high;
  while (at(high)->noise > budget && high < PriceRange::kHighest)
    high *= 64;
  return search(budget, prices.low, high, PriceRange::kSteps);
}

const Solution *Frontier::withinNear(double budget, double noisePrice) {
  const Solution *solution = at(noisePrice);
  if (!solution || solution->noise <= budget)
    return solution;
  double low = noisePrice;
  for (double factor = 1.1; low > 0 && low < prices.high; factor *= factor) {
    double high = low * factor;
    if (at(high)->noise <= budget)
      return search(budget, low, high, PriceRange::kSteps / 3);
    low = high;
  }
  return within(budget);
}
