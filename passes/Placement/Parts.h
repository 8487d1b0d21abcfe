//===- Parts.h - parts of a placement problem ------------------*- C++ -*-===//

#ifndef MP_PASSES_PLACEMENT_PARTS_H
#define MP_PASSES_PLACEMENT_PARTS_H

#include "passes/Placement/Problem.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::mp {

/// A part of a problem that shares nothing with the others, and its solution.
struct PlacementPart {
  PlacementProblem problem;
  llvm::SmallVector<int, 1> values, calls; ///< numbers in the whole
  llvm::SmallVector<int, 2> ports;
  bool isNoisy = false;
  PlacementProblem::Assignment assignment;

  /// Takes what an assignment of the whole says of this part.
  void takeFrom(const PlacementProblem::Assignment &whole);

  /// Writes the part's assignment into one of the whole.
  void putInto(PlacementProblem::Assignment &whole) const;
};

/// Takes a problem apart. Most values share no call with another one, so that
/// each is a small cut of its own.
std::vector<PlacementPart> takeApart(const PlacementProblem &whole);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_PARTS_H
