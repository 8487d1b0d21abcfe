//===- StoredReasons.h - why a value has its type --------------*- C++ -*-===//

#ifndef MP_PASSES_REPORT_STOREDREASONS_H
#define MP_PASSES_REPORT_STOREDREASONS_H

#include "passes/Placement/Solver.h"
#include "passes/Report/PlacementReport.h"

namespace mlir::mp {

/// The values that `solution` stores, the largest first. Arguments are the
/// caller's and not among them.
std::vector<StoredEntry> describeStored(const PlacementSetup &setup,
                                        const Solution &solution);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_STOREDREASONS_H
