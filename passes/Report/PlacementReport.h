//===- PlacementReport.h - which types are stored, and why -----*- C++ -*-===//
//
// What mp-assign-precision decides about a function and what other decisions
// would cost: the type of each stored value with its reason, the frontier of
// bytes over noise, and what each rule of pins takes.
//
// Bytes are those of the cost model: what kernels read and store of the values
// that a placement is about, and what is kept for backward. Noise is told as a
// factor by which the estimated error of the results grows.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_PLACEMENTREPORT_H
#define MP_PASSES_REPORT_PLACEMENTREPORT_H

#include "passes/Placement/Setup.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::mp {

/// The best placement within one budget.
struct FrontierPoint {
  std::optional<double> epsilon; ///< none: no limit
  int64_t bytes = 0, savedBytes = 0;
  double error = 1; ///< what it reaches
  bool isChosen = false;
};

/// What a graph would be without some pins: the best placement then, within the
/// same budget. Where that saves nothing, what it saves to round all the same.
struct Unpinning {
  std::string rule;
  int64_t pins = 0; ///< that hold a value; of one pin, those like it
  int64_t bytes = 0, savedBytes = 0; ///< how many less
  double error = 1;
  bool isWithin = true; ///< the budget
  // Of one pin:
  std::string region, op, source, reason;
};

/// Why a value has its types.
enum class StoredReason : uint8_t {
  Rounded,  ///< a rounding is added
  Traced,   ///< the traced program rounds it
  Call,     ///< a library call stores it so
  Pinned,   ///< pins
  Reader,   ///< a library call reads it as f32
  Result,   ///< the caller gets it as f32
  Observed, ///< a comparison or the like would show the rounding
  Numerics, ///< the level adds no rounding there
  Noise,    ///< what it adds to the error is too dear
  Copies,   ///< another type would not save bytes
};
StringRef stringifyStoredReason(StoredReason reason);

/// One stored value.
struct StoredEntry {
  std::string region, op, shape, source;
  std::string types; ///< "f32", "bf16" or "f32 and bf16"
  std::string half;  ///< the type that the other one would be
  StoredReason reason = StoredReason::Copies;
  std::string why;  ///< the reason without figures
  std::string rule; ///< of the pins
  int64_t bytes = 0;
  /// What its roundings save, or would save.
  int64_t saves = 0;
  /// What they add to the noise, as a share of the noise as traced.
  double noise = 0;
  bool isSaved = false; ///< for backward
  bool isBackward = false;
  int64_t node = -1;
};

/// "saved for backward, error x 1.002, saves 6.0 MiB".
std::string storedText(const StoredEntry &entry);

struct PlacementReport {
  std::string function;
  std::string half; ///< "bf16"
  double epsilon = 0;
  int64_t values = 0, reads = 0;
  /// Value of the minimum cut: bytes, and noise at its price.
  int64_t cut = 0;
  int64_t bytes = 0, savedBytes = 0;
  double error = 1, allowedError = 1;
  /// What one more percent of error would save at the margin.
  int64_t bytesPerPercent = 0;
  std::vector<FrontierPoint> frontier; ///< by budget
  std::vector<Unpinning> rules, pins;  ///< those that save most first
  std::vector<StoredEntry> stored;     ///< the largest first
};

/// Solves the placement of `func`, the function that mp-assign-precision would
/// get. std::nullopt if there is nothing to place.
llvm::Expected<std::optional<PlacementReport>>
makePlacementReport(func::FuncOp func, const AssignPrecisionOptions &options);

/// "x 1.046", "x 2.5" or "unknown".
std::string errorText(double error);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_PLACEMENTREPORT_H
