//===- RegionCost.h - whether a region is worth its kernel -----*- C++ -*-===//
//
// Counts what crosses memory, and how many kernels run, with the region and
// without it: over the candidate and what a fuser could compute together with
// it. A kernel of ours is as fast as the table Efficiency.def says.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_OUTLINE_REGIONCOST_H
#define MP_PASSES_OUTLINE_REGIONCOST_H

#include "passes/CostModel/CostModel.h"
#include "passes/Outline/Candidate.h"

namespace mlir::mp {

struct RegionCost {
  /// Of one way to compute the neighbourhood of a candidate.
  struct Side {
    double seconds = 0;
    int64_t bytes = 0, kernels = 0;
  };
  Side with, without;
  /// The share of the library's speed that our kernel reaches; none where the
  /// table has no row for it.
  std::optional<double> share;

  /// Seconds that the region saves; below zero if it costs more.
  double saved() const { return without.seconds - with.seconds; }
  bool pays() const { return share && saved() >= 0; }
  /// One line with the numbers, for remarks.
  std::string text() const;
};

RegionCost costOf(const Candidate &candidate, const CostModel &model);

} // namespace mlir::mp

#endif // MP_PASSES_OUTLINE_REGIONCOST_H
