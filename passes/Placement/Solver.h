//===- Solver.h - the best placement within a noise budget -----*- C++ -*-===//

#ifndef MP_PASSES_PLACEMENT_SOLVER_H
#define MP_PASSES_PLACEMENT_SOLVER_H

#include "passes/Placement/Problem.h"

namespace mlir::mp {

struct Solution {
  PlacementProblem::Assignment assignment;
  int64_t bytes = 0;     ///< cost without the price of noise
  double noise = 0;      ///< added, in the unit of Noise.h
  double noisePrice = 0; ///< bytes per unit of noise
};

/// Where to look for the price of noise.
struct PriceRange {
  /// It is found to 1 part in 2^kSteps of its logarithm's range.
  static constexpr int kSteps = 10;
  /// Beyond this price any noise is refused, see Problem.cpp.
  static constexpr double kHighest = 1e30;

  explicit PriceRange(const PlacementProblem &problem);

  /// Bytes per unit of noise at which no port is too dear, and at which most
  /// are: a port can save more than its own bytes.
  double low = 1, high = 1;
};

/// The cheapest assignment whose noise is at most `budget` among those that are
/// optimal for some price of noise (the lower convex hull of bytes over noise).
/// std::nullopt if what is fixed contradicts itself.
std::optional<Solution> solveWithin(const PlacementProblem &problem,
                                    double budget);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_SOLVER_H
