//===- Solver.cpp - the best placement within a noise budget --------------===//

#include "passes/Placement/Solver.h"

#include <cmath>

using namespace mlir::mp;

// The price of noise is found to 1 part in 2^kSteps of its logarithm's range.
static constexpr int kSteps = 10;

static std::optional<Solution> solveAt(const PlacementProblem &problem,
                                       double price) {
  auto assignment = problem.solve(price);
  if (!assignment)
    return std::nullopt;
  Solution solution;
  solution.noise = problem.noiseOf(*assignment);
  solution.bytes = *problem.costOf(*assignment, 0);
  solution.noisePrice = price;
  solution.assignment = std::move(*assignment);
  return solution;
}

std::optional<Solution> mlir::mp::solveWithin(const PlacementProblem &problem,
                                              double budget) {
  std::optional<Solution> free = solveAt(problem, 0);
  if (!free || free->noise <= budget)
    return free;
  // Bytes per unit of noise at which any port is too dear, and none is.
  double low = 1, high = 1;
  for (const PlacementProblem::Port &port : problem.getPorts())
    if (port.noise > 0) {
      double bytes = double(port.readHigh) + 1;
      low = std::min(low, 1 / port.noise);
      high = std::max(high, 64 * bytes / port.noise);
    }
  Solution best = *solveAt(problem, high);
  for (int step = 0; step < kSteps; ++step) {
    double middle = std::sqrt(low * high);
    Solution solution = *solveAt(problem, middle);
    bool fits = solution.noise <= budget;
    (fits ? high : low) = middle;
    if (fits)
      best = std::move(solution);
  }
  return best;
}
