//===- Rest.h - what a budget of noise has left ----------------*- C++ -*-===//
//
// A cut gives the placements of the lower convex hull of bytes over noise, and
// the best of them seldom uses all of a budget. The rest is spent part by part:
// of the parts that share no call with others, the one that saves most bytes
// for its noise comes first, as long as one fits.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_REST_H
#define MP_PASSES_PLACEMENT_REST_H

#include "passes/Placement/Solver.h"

namespace mlir::mp {

/// `solution`, which is one of `problem` within `budget`, with more roundings
/// as far as they fit. Each that is added saves bytes.
Solution spendRest(const PlacementProblem &problem, Solution solution,
                   double budget);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_REST_H
