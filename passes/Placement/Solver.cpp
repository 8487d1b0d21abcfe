//===- Solver.cpp - the best placement within a noise budget --------------===//

#include "passes/Placement/Solver.h"
#include "passes/Placement/Frontier.h"

using namespace mlir::mp;

std::optional<Solution> mlir::mp::solveWithin(const PlacementProblem &problem,
                                              double budget) {
  Frontier frontier(problem);
  const Solution *solution = frontier.within(budget);
  return solution ? std::optional(*solution) : std::nullopt;
}
