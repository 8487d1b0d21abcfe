//===- CastReport.h - what conversions a graph holds, and why --*- C++ -*-===//
//
// The model behind `mpopt explain`: the conversions of a graph before and after
// the passes, by region (module path), with the record of what changed and the
// reason of what is left. Printers (ReportPrinters.h) only lay it out.
//
// The bytes of a conversion are what a kernel of its own would move: elements
// times (size of the source type + size of the result type). With a dynamic
// dimension they are unknown, and counted as "dynamic".
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_CASTREPORT_H
#define MP_PASSES_REPORT_CASTREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/CastReasons.h"
#include "passes/Report/PlacementReport.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::mp {

/// Some conversions together.
struct Tally {
  int64_t casts = 0;
  int64_t bytes = 0;   ///< of those with a static shape
  int64_t dynamic = 0; ///< how many have a dynamic shape

  void add(std::optional<int64_t> castBytes);
  Tally &operator+=(const Tally &other);
  bool operator==(const Tally &other) const;
  bool operator!=(const Tally &other) const { return !(*this == other); }
};

/// A tally before the passes and one after.
struct Change {
  Tally before, after;
  bool operator==(const Change &other) const;
};

/// One conversion.
struct CastEntry {
  std::string region; ///< module path; empty for the model itself
  std::string from, to, shape;
  CastOrigin origin = CastOrigin::user;
  CastRole role = CastRole::Activation;
  bool isBackward = false;
  int64_t node = -1;
  std::string source; ///< "file.py:12", may be empty
  std::optional<int64_t> bytes;
  std::string reason; ///< why it is there; only of the graph after

  /// "f32 -> bf16".
  std::string conversion() const { return from + " -> " + to; }
};

/// One entry of a function's `mp.rewrites`.
struct RewriteEntry {
  std::string rule, contract, why, region, op;
  int64_t node = -1;
  bool isApplied = false;
};

/// One pin of an operation or an argument (dialect/IR/Pins.h).
struct PinEntry {
  std::string region, format, where, rule, reason;
  std::string op; ///< "aten.exp.default", or the argument's name
  bool isBackward = false;
  int64_t node = -1;
  std::string source; ///< "file.py:12", may be empty
  /// What storing the pinned results in f32 and not in a half takes; unknown
  /// with a dynamic shape, 0 of operands.
  std::optional<int64_t> bytes;
};

struct RegionReport {
  std::string path;
  Change total;
  std::vector<RewriteEntry> applied;
  std::vector<CastEntry> left;
  std::vector<PinEntry> pins;
  std::vector<StoredEntry> stored; ///< the largest first
};

inline constexpr std::array<CastRole, 4> kCastRoles = {
    CastRole::Activation, CastRole::Weight, CastRole::Gradient,
    CastRole::Index};

/// What mp-assign-precision expects of the roundings that it added.
struct ErrorGrowth {
  double expected = 0, epsilon = 0;
};

struct CastReport {
  std::string input;    ///< name of the file
  std::string numerics; ///< contract, empty when unknown
  std::string target;
  std::string policy; ///< name and digest of the user's, or empty
  std::vector<std::string> policyNotes; ///< its rules that match nothing
  /// By which share the estimated error grows and may grow; none where no
  /// stored types were chosen within a budget.
  std::optional<ErrorGrowth> errorGrowth;
  Change total, forward, backward;
  std::map<CastRole, Change> roles;
  std::map<std::string, Change> origins;
  std::map<std::string, Change> conversions; ///< "f32 -> bf16"
  std::vector<RegionReport> regions;         ///< in graph order
  std::map<std::string, int64_t> rules;      ///< applied rewrites by rule
  std::map<std::string, int64_t> pins;       ///< of the graph after, by rule
  std::map<std::string, int64_t> unknownOps; ///< callees without a table row
  int64_t operations = 0;                    ///< of the graph before
  /// Conversions that autocast makes inside operators of a graph which was not
  /// decomposed: no op stands for them, so no pass sees them.
  Tally implicit;
  /// Parameters whose half copies come in, written by the optimizer: no
  /// conversions, and bytes in memory.
  Tally halfWeights;
  /// Of graphs whose storage types are chosen, one for each function.
  std::vector<PlacementReport> placements;
  std::vector<std::string> notes; ///< what could not be found out
};

/// Every mp.cast of `module`, in order, without reasons.
std::vector<CastEntry> collectCasts(ModuleOp module);

/// The entries of `mp.rewrites` of all functions.
std::vector<RewriteEntry> collectRewrites(ModuleOp module);

/// Every pin of `module`, those of arguments first.
std::vector<PinEntry> collectPins(ModuleOp module);

/// Compares a graph before the passes with the one after. In both, all
/// conversions must be mp.cast (mp-normalize).
CastReport makeReport(ModuleOp before, ModuleOp after);

/// Adds a placement, and its values to their regions.
void addPlacement(CastReport &report, PlacementReport placement);

/// Size of an element in memory.
int64_t elementBytes(Type type);

/// "aten.exp.default", or the name of an operation of ours.
std::string operatorName(Operation *op);

/// "4x?x8", or "scalar".
std::string shapeText(RankedTensorType type);

/// "12 B", "3.4 KiB", "1.2 MiB".
std::string formatBytes(int64_t bytes);

/// "model.py:12" of a location; empty if it has no file.
std::string sourceText(Location loc);

/// The path for people: "(model)" for the model itself.
std::string regionLabel(llvm::StringRef path);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_CASTREPORT_H
