//===- Budget.cpp - figures of a graph's precision ------------------------===//

#include "passes/Report/Budget.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::mp;

std::string mlir::mp::regionPattern(StringRef path) {
  SmallVector<StringRef> parts;
  path.split(parts, '.');
  for (StringRef &part : parts)
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      part = "*";
  return llvm::join(parts, ".");
}

//===----------------------------------------------------------------------===//
// Figures of a graph
//===----------------------------------------------------------------------===//

namespace {
/// Adds to the figures of a region and of the whole graph.
class Adder {
public:
  explicit Adder(GraphFigures &figures) : figures(figures) {}

  void add(StringRef region, const Twine &figure, int64_t amount) {
    if (amount == 0)
      return;
    std::string name = figure.str();
    figures.total[name] += amount;
    figures.regions[regionPattern(region)][name] += amount;
  }

private:
  GraphFigures &figures;
};
} // namespace

GraphFigures mlir::mp::figuresOf(const CastReport &report, ModuleOp after) {
  GraphFigures figures;
  if (!report.numerics.empty())
    figures.settings["numerics"] = report.numerics;
  if (!report.target.empty())
    figures.settings["target"] = report.target;
  if (!report.policy.empty())
    figures.settings["policy"] = report.policy;
  Adder adder(figures);
  for (const RegionReport &region : report.regions) {
    const Tally &tally = region.total.after;
    adder.add(region.path, "casts", tally.casts);
    adder.add(region.path, "cast_bytes", tally.bytes);
    adder.add(region.path, "dynamic_casts", tally.dynamic);
    adder.add(region.path, "rewrites", region.applied.size());
    for (const PinEntry &pin : region.pins)
      adder.add(region.path, "pins." + quotedKey(pin.rule), 1);
    for (const CastEntry &cast : region.left)
      adder.add(region.path, "kinds." + quotedKey(cast.conversion()), 1);
  }
  for (const SavedValue &saved : collectSavedValues(after)) {
    adder.add(saved.region, "saved_bytes", saved.bytes.value_or(0));
    adder.add(saved.region, "dynamic_saves", !saved.bytes);
  }
  return figures;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

namespace {
/// What more of a figure means.
enum class Sense { Worse, Better, Neutral };

struct FigureRow {
  StringRef name; ///< up to the first dot
  Sense more;
};
} // namespace

/// More pins cost time or memory, which other figures show; fewer mean that
/// less is kept from rounding, which no other figure does. Rewrites follow the
/// graph: they are told, not judged.
static constexpr FigureRow kFigures[] = {
    {"casts", Sense::Worse},         {"cast_bytes", Sense::Worse},
    {"dynamic_casts", Sense::Worse}, {"kinds", Sense::Worse},
    {"saved_bytes", Sense::Worse},   {"dynamic_saves", Sense::Worse},
    {"pins", Sense::Better},         {"rewrites", Sense::Neutral},
};

static Sense senseOf(StringRef figure) {
  StringRef name = figure.split('.').first;
  for (const FigureRow &row : kFigures)
    if (row.name == name)
      return row.more;
  return Sense::Neutral;
}

static FigureVerdict judge(StringRef figure, int64_t before, int64_t after) {
  Sense more = senseOf(figure);
  if (more == Sense::Neutral)
    return FigureVerdict::Neutral;
  return (after > before) == (more == Sense::Worse) ? FigureVerdict::Worse
                                                    : FigureVerdict::Better;
}

static bool isWithin(int64_t before, int64_t after, double tolerance) {
  return std::abs(double(after) - double(before)) <=
         tolerance * std::abs(double(before));
}

/// One region of both sides; null where a side lacks it.
static void compareRegion(const FigureChange &place, const Figures *before,
                          const Figures *after, double tolerance,
                          std::vector<FigureChange> &changes) {
  static const Figures none;
  const Figures &first = before ? *before : none;
  const Figures &second = after ? *after : none;
  std::set<std::string> names;
  for (const Figures *side : {&first, &second})
    for (const auto &[name, value] : *side)
      names.insert(name);
  auto valueOf = [](const Figures &figures, const std::string &name) {
    auto it = figures.find(name);
    return it == figures.end() ? int64_t(0) : it->second;
  };
  for (const std::string &name : names) {
    FigureChange change = place;
    change.figure = name;
    change.before = valueOf(first, name);
    change.after = valueOf(second, name);
    if (change.before == change.after)
      continue;
    change.verdict = judge(name, change.before, change.after);
    change.isNewRegion = !before;
    change.isGoneRegion = !after;
    if (change.verdict != FigureVerdict::Worse ||
        !isWithin(change.before, change.after, tolerance))
      changes.push_back(std::move(change));
  }
}

std::vector<FigureChange> mlir::mp::compareFigures(StringRef graph,
                                                   const GraphFigures &before,
                                                   const GraphFigures &after,
                                                   double tolerance) {
  std::vector<FigureChange> changes;
  FigureChange place;
  place.graph = graph.str();
  place.isTotal = true;
  compareRegion(place, &before.total, &after.total, tolerance, changes);
  place.isTotal = false;
  std::set<std::string> regions;
  for (const GraphFigures *side : {&before, &after})
    for (const auto &[name, figures] : side->regions)
      regions.insert(name);
  auto find = [](const GraphFigures &side, const std::string &name) {
    auto it = side.regions.find(name);
    return it == side.regions.end() ? nullptr : &it->second;
  };
  for (const std::string &region : regions) {
    place.region = region;
    compareRegion(place, find(before, region), find(after, region), tolerance,
                  changes);
  }
  return changes;
}
