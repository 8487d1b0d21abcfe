//===- ReportText.cpp - a cast report for a terminal ----------------------===//

#include "passes/Report/PlacementPrinters.h"
#include "passes/Report/ReportPrinters.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::mp;

static constexpr size_t kColumns = 100;

void mlir::mp::printWrapped(llvm::raw_ostream &os, StringRef text,
                            size_t column, size_t indent) {
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  bool atStart = true;
  for (StringRef word : words) {
    if (!atStart && column + 1 + word.size() > kColumns) {
      os << '\n';
      os.indent(indent);
      column = indent;
      atStart = true;
    }
    if (!atStart) {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
    atStart = false;
  }
  os << '\n';
}

/// "1.5 MiB", "1.5 MiB + 3 dynamic", "dynamic" or "-".
static std::string bytesText(const Tally &tally) {
  if (!tally.casts)
    return "-";
  if (tally.dynamic == tally.casts)
    return "dynamic";
  std::string text = formatBytes(tally.bytes);
  if (tally.dynamic)
    text += " + " + std::to_string(tally.dynamic) + " dynamic";
  return text;
}

static void printRow(llvm::raw_ostream &os, StringRef label,
                     const Change &change) {
  os << llvm::formatv("  {0,-28} {1,8}  {2,-22} {3,8}  {4}\n", label,
                      change.before.casts, bytesText(change.before),
                      change.after.casts, bytesText(change.after));
}

static void printTotals(const CastReport &report, llvm::raw_ostream &os) {
  os << llvm::formatv("  {0,-28} {1,8}  {2,-22} {3,8}  {4}\n", "conversions",
                      "before", "bytes", "after", "bytes");
  os << "  " << std::string(kColumns - 6, '-') << '\n';
  printRow(os, "all", report.total);
  if (report.backward.before.casts || report.backward.after.casts) {
    printRow(os, "  forward", report.forward);
    printRow(os, "  backward", report.backward);
  }
  auto section = [&](StringRef title, const auto &rows, auto name) {
    os << "  " << title << '\n';
    for (const auto &[key, change] : rows)
      if (change.before.casts || change.after.casts)
        printRow(os, "  " + std::string(name(key)), change);
  };
  section("by role", report.roles,
          [](CastRole role) { return stringifyCastRole(role).str(); });
  section("by origin", report.origins, [](const std::string &s) { return s; });
  section("by types", report.conversions,
          [](const std::string &s) { return s; });
}

/// "  3 x pinned fp32 result, softmax, 1.5 MiB more: why". More than in a half.
static void printPins(const RegionGroup &group, llvm::raw_ostream &os) {
  for (const PinGroup &pins : groupPins(group)) {
    const PinEntry &first = *pins.first;
    std::string bytes =
        pins.bytes ? ", " + formatBytes(pins.bytes) + " more" : "";
    std::string head =
        llvm::formatv("  {0,4} x pinned {1} {2}, {3}{4}: ", pins.count,
                      first.format, first.where, first.rule, bytes);
    os << head;
    std::string tail = first.reason;
    if (!first.source.empty())
      tail += " [" + first.source + "]";
    printWrapped(os, tail, head.size(), 11);
  }
}

static void printGroup(const RegionGroup &group, llvm::raw_ostream &os) {
  size_t times = group.regions.size();
  os << '\n' << group.label;
  if (times > 1)
    os << "  (" << times << " regions)";
  const Tally &before = group.total.before, &after = group.total.after;
  if (before.casts || after.casts)
    os << "\n  " << before.casts << " -> " << after.casts << " conversions, "
       << bytesText(before) << " -> " << bytesText(after) << '\n';
  else
    os << "\n  no conversions\n";
  for (const RuleGroup &rule : groupRules(group)) {
    std::string head = llvm::formatv("  {0,4} x {1} ({2}): ", rule.count,
                                     rule.rule, rule.contract);
    os << head;
    printWrapped(os, rule.why, head.size(), 11);
  }
  for (const LeftGroup &left : groupLeft(group)) {
    const CastEntry &cast = *left.first;
    std::string head = llvm::formatv(
        "  {0,4} left {1}, {2} {3}{4}, {5}: ", left.total.casts,
        cast.conversion(), shapesText(left), stringifyCastRole(cast.role),
        cast.isBackward ? " in backward" : "", bytesText(left.total));
    os << head;
    std::string tail = cast.reason;
    if (!cast.source.empty())
      tail += " [" + cast.source + "]";
    printWrapped(os, tail, head.size(), 11);
  }
  printPins(group, os);
  printStoredText(group, os);
}

static void printNotes(const CastReport &report, llvm::raw_ostream &os) {
  if (report.halfWeights.casts)
    os << "\nnote: " << report.halfWeights.casts
       << " weights come in as half copies that the optimizer writes ("
       << bytesText(report.halfWeights) << ")\n";
  if (report.implicit.casts) {
    os << '\n';
    printWrapped(os,
                 "note: autocast makes " +
                     std::to_string(report.implicit.casts) +
                     " further conversions (" + bytesText(report.implicit) +
                     ") inside operators of this graph, where no pass sees "
                     "them; save ep.run_decompositions({}) to have them as "
                     "operations",
                 0, 6);
  }
  for (const std::string &note : report.notes) {
    os << '\n';
    printWrapped(os, "note: " + note, 0, 6);
  }
  for (const std::string &note : report.policyNotes) {
    os << '\n';
    printWrapped(os, "note: policy " + note, 0, 6);
  }
  if (!report.unknownOps.empty()) {
    std::string names;
    for (const auto &[name, count] : report.unknownOps)
      names += (names.empty() ? "" : ", ") + name + " (" +
               std::to_string(count) + ")";
    os << '\n';
    printWrapped(os, "note: no rule for: " + names, 0, 6);
  }
}

void mlir::mp::printText(const CastReport &report, llvm::raw_ostream &os) {
  os << "mpopt explain " << report.input << "\n  " << report.operations
     << " operations";
  if (!report.target.empty())
    os << ", target " << report.target;
  if (!report.numerics.empty())
    os << ", numerics " << report.numerics;
  if (!report.policy.empty())
    os << "\n  policy " << report.policy;
  if (report.errorGrowth)
    os << llvm::formatv("\n  estimated error grows by {0:P} of {1:P}",
                        report.errorGrowth->expected,
                        report.errorGrowth->epsilon);
  os << "\n\n";
  if (!report.total.before.casts && !report.total.after.casts)
    os << "  no conversions\n";
  else
    printTotals(report, os);
  for (const PlacementReport &placement : report.placements)
    printPlacementText(placement, os);
  for (const RegionGroup &group : groupRegions(report))
    printGroup(group, os);
  printNotes(report, os);
}
