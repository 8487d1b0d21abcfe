//===- RegionBudgets.h - budgets of noise of single modules ----*- C++ -*-===//
//
// What a module's values may add to the noise of the results, beside what all
// may add together. A region is solved as if noise cost nothing elsewhere; what
// it must then read unrounded stays so, for a price of noise elsewhere rounds
// nothing more (solutions nest).
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_REGIONBUDGETS_H
#define MP_PASSES_PLACEMENT_REGIONBUDGETS_H

#include "passes/Placement/Placement.h"
#include "passes/Policy/Policy.h"

namespace mlir::mp {

/// Fixes what the budgets of `policy` leave no room for. What is rounded counts
/// for the module that computes it.
void keepRegionBudgets(Placement &placement, const Policy &policy);

/// The variance that may be added to that of `traced` if errors may grow by
/// `epsilon`.
double addedNoise(double epsilon, double traced);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_REGIONBUDGETS_H
