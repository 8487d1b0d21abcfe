//===- RegionGroups.h - like regions together ------------------*- C++ -*-===//
//
// A model repeats its layers: "layers.0.attn" to "layers.11.attn" tell the same
// story. Regions whose paths differ in one number only and whose figures are
// equal become one group, "layers.[0..11].attn".
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_REGIONGROUPS_H
#define MP_PASSES_REPORT_REGIONGROUPS_H

#include "passes/Report/CastReport.h"

#include <set>

namespace mlir::mp {

struct RegionGroup {
  std::string label;
  std::vector<const RegionReport *> regions; ///< at least one
  Change total;                              ///< over all regions
};

/// Applied rewrites of one rule.
struct RuleGroup {
  std::string rule, contract, why; ///< `why` of the first
  int64_t count = 0;
};

/// Conversions that are left for one reason.
struct LeftGroup {
  const CastEntry *first = nullptr;
  Tally total;
  std::set<std::string> shapes;
};

/// Pins of one rule on one part.
struct PinGroup {
  const PinEntry *first = nullptr;
  int64_t count = 0;
  int64_t bytes = 0; ///< of those with a static shape
};

/// Stored values alike: as the first, with the bytes and the noise of all.
struct StoredGroup {
  StoredEntry total;
  int64_t count = 0;
};

/// The one shape of a group, or how many it has.
std::string shapesText(const LeftGroup &group);

/// Groups regions that have a conversion, a rewrite, a pin or a stored value,
/// in graph order.
std::vector<RegionGroup> groupRegions(const CastReport &report);
std::vector<RuleGroup> groupRules(const RegionGroup &group);
std::vector<LeftGroup> groupLeft(const RegionGroup &group);
std::vector<PinGroup> groupPins(const RegionGroup &group);
/// The largest first, and no more than a reader wants to see.
std::vector<StoredGroup> groupStored(const RegionGroup &group);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_REGIONGROUPS_H
