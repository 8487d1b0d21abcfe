//===- GraphDiff.h - how two graphs differ in precision --------*- C++ -*-===//
//
// The model behind `mpopt diff`: conversions, bytes and result types of two
// graphs by region, and the regions in which they differ.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_GRAPHDIFF_H
#define MP_PASSES_REPORT_GRAPHDIFF_H

#include "passes/Report/CastReport.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::mp {

/// The precision of one region: its conversions, and how many results of its
/// other ops have each element type.
struct RegionProfile {
  Tally casts;
  std::map<std::string, int64_t> conversions; ///< "f32 -> bf16"
  std::map<std::string, int64_t> types;       ///< "bf16"
  bool operator==(const RegionProfile &other) const;
};

struct RegionDiff {
  std::string path;
  RegionProfile first, second;
};

/// The regions in which `first` and `second` differ, by path.
std::vector<RegionDiff> diffGraphs(ModuleOp first, ModuleOp second);

void printDiff(llvm::ArrayRef<RegionDiff> diff, llvm::raw_ostream &os);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_GRAPHDIFF_H
