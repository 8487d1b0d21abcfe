//===- Setup.h - what mp-assign-precision decides about --------*- C++ -*-===//
//
// The placement problem of a function under the options of the pass, for the
// pass itself and for reports about it.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_SETUP_H
#define MP_PASSES_PLACEMENT_SETUP_H

#include "passes/Passes.h"
#include "passes/Placement/Placement.h"

#include <memory>

namespace mlir::mp {

class PlacementSetup {
public:
  /// Fails if the cost model cannot be read.
  static llvm::Expected<std::unique_ptr<PlacementSetup>>
  create(func::FuncOp func, const AssignPrecisionOptions &options);

  const Placement &getPlacement() const { return placement; }

  /// The noise that may be added if errors may grow by `epsilon`.
  double budgetFor(double epsilon) const;

  /// How much larger errors are with `noise` added: 1 for none, infinite if
  /// there was no noise before.
  double errorFactor(double noise) const;

private:
  PlacementSetup(func::FuncOp func, CostModel model,
                 const AssignPrecisionOptions &options);

  CostModel costs;
  FusionEstimate fusion;
  Placement placement;
};

/// The options of a pass if it is mp-assign-precision.
std::optional<AssignPrecisionOptions> assignOptionsOf(const Pass &pass);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_SETUP_H
