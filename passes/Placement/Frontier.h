//===- Frontier.h - bytes against noise ------------------------*- C++ -*-===//
//
// The best placements for several budgets of noise. Each is a vertex of the
// lower convex hull of bytes over noise, which is found by its slope, the price
// of noise. Budgets share what was solved before.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_FRONTIER_H
#define MP_PASSES_PLACEMENT_FRONTIER_H

#include "passes/Placement/Solver.h"

#include <map>

namespace mlir::mp {

class Frontier {
public:
  /// `problem` must outlive this, and so must `narrower`: the frontier of the
  /// same problem with more of it fixed High, which saves work.
  explicit Frontier(const PlacementProblem &problem,
                    const Frontier *narrower = nullptr);

  /// The solution of solveWithin; null if what is fixed contradicts itself.
  const Solution *within(double budget);

  /// The same if its price is a bit above `noisePrice`.
  const Solution *withinNear(double budget, double noisePrice);

  /// The best placement at a price of noise.
  const Solution *at(double noisePrice);

private:
  const Solution *search(double budget, double low, double high, int steps);

  const PlacementProblem &problem;
  const Frontier *narrower;
  PriceRange prices;
  std::map<double, Solution> solved; ///< by price
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_FRONTIER_H
