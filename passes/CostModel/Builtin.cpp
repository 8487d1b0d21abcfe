//===- Builtin.cpp - the models in the library, and which one fits --------===//

#include "passes/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir::mp;
using llvm::StringRef;

namespace {
struct Builtin {
  StringRef name, text;
};

/// Which CPU a model describes: one that has all these features.
struct CpuRow {
  StringRef name;
  llvm::SmallVector<StringRef, 2> features;
};
} // namespace

/// Sorted by name: CMake lists the files so.
static const Builtin kBuiltins[] = {
#include "passes/CostModel/Targets.inc"
};

llvm::ArrayRef<StringRef> mlir::mp::builtinCostModels() {
  static const llvm::SmallVector<StringRef> names = llvm::to_vector(
      llvm::map_range(kBuiltins, [](const Builtin &row) { return row.name; }));
  return names;
}

std::optional<StringRef> mlir::mp::builtinCostModelText(StringRef name) {
  for (const Builtin &row : kBuiltins)
    if (row.name == name)
      return row.text;
  return std::nullopt;
}

StringRef mlir::mp::cpuCostModel(const llvm::StringMap<bool> &features) {
  // The fastest first.
  static const CpuRow rows[] = {
      {"cpu-amx", {"amx-tile", "amx-bf16"}},
      {"cpu-avx512_bf16", {"avx512bf16"}},
      {"cpu-avx512", {"avx512f", "avx512bw"}},
  };
  for (const CpuRow &row : rows)
    if (llvm::all_of(row.features, [&](StringRef feature) {
          return features.lookup(feature);
        }))
      return row.name;
  return "cpu-avx2";
}

StringRef mlir::mp::hostCostModel() {
  llvm::StringMap<bool> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features[feature.getKey()] = feature.getValue();
  return cpuCostModel(features);
}

std::optional<StringRef> mlir::mp::cudaCostModel(unsigned capability) {
  std::optional<StringRef> best;
  unsigned newest = 0;
  for (StringRef name : builtinCostModels()) {
    StringRef number = name;
    unsigned value;
    if (!number.consume_front("sm_") || number.getAsInteger(10, value))
      continue;
    if (value <= capability && value > newest) {
      newest = value;
      best = name;
    }
  }
  return best;
}
