//===- GraphDiff.cpp - how two graphs differ in precision -----------------===//

#include "passes/Report/GraphDiff.h"
#include "dialect/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace mlir::mp;

bool RegionProfile::operator==(const RegionProfile &other) const {
  return casts == other.casts && conversions == other.conversions &&
         types == other.types;
}

static void countTypes(Operation *op, RegionProfile &profile) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      std::string text;
      llvm::raw_string_ostream(text) << tensor.getElementType();
      ++profile.types[text];
    }
}

static std::map<std::string, RegionProfile> profileOf(ModuleOp module) {
  std::map<std::string, RegionProfile> regions;
  for (const CastEntry &cast : collectCasts(module)) {
    RegionProfile &region = regions[cast.region];
    region.casts.add(cast.bytes);
    ++region.conversions[cast.conversion()];
  }
  module.walk([&](func::FuncOp func) {
    for (Operation &op : func.getBody().getOps())
      if (!isa<CastOp, func::ReturnOp>(op))
        countTypes(&op, regions[modulePathOf(op.getLoc()).str()]);
  });
  return regions;
}

std::vector<RegionDiff> mlir::mp::diffGraphs(ModuleOp first, ModuleOp second) {
  auto a = profileOf(first), b = profileOf(second);
  std::set<std::string> paths;
  for (const auto &side : {a, b})
    for (const auto &[path, profile] : side)
      paths.insert(path);
  std::vector<RegionDiff> diff;
  for (const std::string &path : paths)
    if (!(a[path] == b[path]))
      diff.push_back({path, a[path], b[path]});
  return diff;
}

static void printLine(llvm::raw_ostream &os, StringRef label, int64_t first,
                      int64_t second) {
  if (first != second)
    os << llvm::formatv("  {0,-32} {1,12} -> {2}\n", label, first, second);
}

/// One line for each key whose numbers differ.
static void printCounts(llvm::raw_ostream &os, StringRef prefix,
                        std::map<std::string, int64_t> first,
                        std::map<std::string, int64_t> second) {
  std::set<std::string> keys;
  for (const auto &side : {first, second})
    for (const auto &[key, count] : side)
      keys.insert(key);
  for (const std::string &key : keys)
    printLine(os, (prefix + key).str(), first[key], second[key]);
}

void mlir::mp::printDiff(ArrayRef<RegionDiff> diff, llvm::raw_ostream &os) {
  if (diff.empty())
    os << "no difference in conversions, types or bytes\n";
  for (const RegionDiff &region : diff) {
    os << regionLabel(region.path) << '\n';
    printLine(os, "conversions", region.first.casts.casts,
              region.second.casts.casts);
    printCounts(os, "  ", region.first.conversions, region.second.conversions);
    printLine(os, "bytes of conversions", region.first.casts.bytes,
              region.second.casts.bytes);
    printLine(os, "conversions of dynamic size", region.first.casts.dynamic,
              region.second.casts.dynamic);
    printCounts(os, "results of type ", region.first.types,
                region.second.types);
  }
}
