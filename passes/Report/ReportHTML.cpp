//===- ReportHTML.cpp - a cast report as one page -------------------------===//
//
// No script and no outside resource: the page can be attached to a bug report.
// Tables have captions and row headers, colours follow the reader's setting and
// never carry a meaning alone.
//
//===----------------------------------------------------------------------===//

#include "passes/Report/PlacementPrinters.h"
#include "passes/Report/ReportPrinters.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::mp;

static constexpr const char *kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --page: #ffffff;
  --card: #f6f8fa; --line: #d0d7de; --old: #b35900; --new: #0b6bcb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9aa4af;
  --page: #0d1117; --card: #161b22; --line: #30363d; --old: #f0a45d; --new: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; color: var(--ink);
  background: var(--page); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); }
.cards { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; }
.card { flex: 1 1 13rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; padding: .75rem 1rem; }
.card b { display: block; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
caption { text-align: left; color: var(--dim); padding-bottom: .35rem; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; } tbody th { font-weight: 500; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .875em ui-monospace, monospace; overflow-wrap: anywhere; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem 1rem; margin: .5rem 0; }
summary { cursor: pointer; } summary code { font-weight: 600; }
summary span { color: var(--dim); margin-left: .5rem; }
.bar { height: .5rem; border-radius: .25rem; background: var(--old); margin: .2rem 0; min-width: 2px; }
.bar.new { background: var(--new); }
figure { margin: 1rem 0; } figcaption { color: var(--dim); }
svg { width: 100%; max-width: 46rem; height: auto; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .dim { fill: var(--dim); }
svg .grid { stroke: var(--line); } svg .chosen { stroke: var(--dim); stroke-dasharray: 4 3; }
svg .line { fill: none; stroke-width: 2; } svg .moved { stroke: var(--old); }
svg .saved { stroke: var(--new); } svg .dot.moved { fill: var(--old); }
svg .dot.saved { fill: var(--page); stroke-width: 2; }
tr.chosen th, tr.chosen td { font-weight: 650; }
)css";

namespace {
class Page {
public:
  explicit Page(llvm::raw_ostream &os) : os(os) {}
  void write(const CastReport &report);

private:
  std::string escaped(StringRef text) {
    std::string result;
    llvm::raw_string_ostream stream(result);
    llvm::printHTMLEscaped(text, stream);
    return result;
  }
  void head(const CastReport &report);
  void cards(const CastReport &report);
  void card(StringRef title, const std::string &before,
            const std::string &after, double share);
  void breakdown(const CastReport &report);
  void row(StringRef label, const Change &change);
  void group(const RegionGroup &group);
  void rules(const RegionGroup &group);
  void left(const RegionGroup &group);
  void pins(const RegionGroup &group);
  void notes(const CastReport &report);

  llvm::raw_ostream &os;
};
} // namespace

static std::string bytesText(const Tally &tally) {
  if (tally.casts && tally.dynamic == tally.casts)
    return "dynamic";
  std::string text = formatBytes(tally.bytes);
  if (tally.dynamic)
    text += " + " + std::to_string(tally.dynamic) + " dynamic";
  return text;
}

/// after / before, for a bar; 1 when nothing was there.
static double shareOf(int64_t before, int64_t after) {
  return before ? std::min(double(after) / before, 1.0) : 1.0;
}

void Page::head(const CastReport &report) {
  std::string title = escaped(report.input);
  os << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n"
     << "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
     << "<title>mpopt: " << title << "</title>\n<style>" << kStyle
     << "</style>\n</head>\n<body>\n<main>\n<h1>Conversions in " << title
     << "</h1>\n<p class=\"dim\">" << report.operations << " operations";
  if (!report.target.empty())
    os << ", target " << escaped(report.target);
  if (!report.numerics.empty())
    os << ", numerics " << escaped(report.numerics);
  if (!report.policy.empty())
    os << ", policy " << escaped(report.policy);
  if (report.errorGrowth)
    os << llvm::formatv(", estimated error grows by {0:P} of {1:P}",
                        report.errorGrowth->expected,
                        report.errorGrowth->epsilon);
  os << "</p>\n";
}

void Page::card(StringRef title, const std::string &before,
                const std::string &after, double share) {
  os << "<div class=\"card\"><span class=\"dim\">" << title << "</span><b>"
     << before << " → " << after << "</b>\n<div aria-hidden=\"true\">"
     << "<div class=\"bar\"></div><div class=\"bar new\" style=\"width:"
     << llvm::format("%.1f", 100 * share) << "%\"></div></div></div>\n";
}

void Page::cards(const CastReport &report) {
  const Tally &before = report.total.before, &after = report.total.after;
  const Change &activations = report.roles.at(CastRole::Activation);
  int64_t rewrites = 0;
  for (const auto &[rule, count] : report.rules)
    rewrites += count;
  os << "<div class=\"cards\">\n";
  card("Conversions", std::to_string(before.casts), std::to_string(after.casts),
       shareOf(before.casts, after.casts));
  card("Bytes, each as its own kernel", bytesText(before), bytesText(after),
       shareOf(before.bytes, after.bytes));
  card("Of activations", std::to_string(activations.before.casts),
       std::to_string(activations.after.casts),
       shareOf(activations.before.casts, activations.after.casts));
  os << "<div class=\"card\"><span class=\"dim\">Rewrites</span><b>" << rewrites
     << "</b></div>\n</div>\n";
}

void Page::row(StringRef label, const Change &change) {
  if (!change.before.casts && !change.after.casts)
    return;
  os << "<tr><th scope=\"row\">" << escaped(label) << "</th><td class=\"n\">"
     << change.before.casts << "</td><td class=\"n\">"
     << bytesText(change.before) << "</td><td class=\"n\">"
     << change.after.casts << "</td><td class=\"n\">" << bytesText(change.after)
     << "</td></tr>\n";
}

void Page::breakdown(const CastReport &report) {
  auto open = [&](StringRef caption) {
    os << "<div class=\"scroll\"><table><caption>" << caption
       << "</caption><thead><tr><td></td><th scope=\"col\" class=\"n\">before"
          "</th><th scope=\"col\" class=\"n\">bytes</th><th scope=\"col\" "
          "class=\"n\">after</th><th scope=\"col\" class=\"n\">bytes</th></tr>"
          "</thead><tbody>\n";
  };
  auto close = [&] { os << "</tbody></table></div>\n"; };
  os << "<h2>What is converted</h2>\n";
  open("By phase and role");
  row("forward", report.forward);
  row("backward", report.backward);
  for (CastRole role : kCastRoles)
    row(stringifyCastRole(role), report.roles.at(role));
  close();
  open("By who asked for it");
  for (const auto &[name, change] : report.origins)
    row(name, change);
  close();
  open("By types");
  for (const auto &[name, change] : report.conversions)
    row(name, change);
  close();
}

void Page::rules(const RegionGroup &group) {
  std::vector<RuleGroup> list = groupRules(group);
  if (list.empty())
    return;
  os << "<div class=\"scroll\"><table><caption>What "
        "changed</caption><thead><tr>"
        "<th scope=\"col\">rule</th><th scope=\"col\">contract</th><th "
        "scope=\"col\" class=\"n\">times</th><th scope=\"col\">why</th></tr>"
        "</thead><tbody>\n";
  for (const RuleGroup &rule : list)
    os << "<tr><th scope=\"row\"><code>" << escaped(rule.rule)
       << "</code></th><td>" << escaped(rule.contract)
       << "</td><td class=\"n\">" << rule.count << "</td><td>"
       << escaped(rule.why) << "</td></tr>\n";
  os << "</tbody></table></div>\n";
}

void Page::left(const RegionGroup &group) {
  std::vector<LeftGroup> list = groupLeft(group);
  if (list.empty())
    return;
  os << "<div class=\"scroll\"><table><caption>What is "
        "left</caption><thead><tr>"
        "<th scope=\"col\">conversion</th><th scope=\"col\">shape</th><th "
        "scope=\"col\">of</th><th scope=\"col\" class=\"n\">times</th><th "
        "scope=\"col\" class=\"n\">bytes</th><th scope=\"col\">why</th></tr>"
        "</thead><tbody>\n";
  for (const LeftGroup &entry : list) {
    const CastEntry &cast = *entry.first;
    os << "<tr><th scope=\"row\"><code>" << escaped(cast.conversion())
       << "</code></th><td><code>" << escaped(shapesText(entry))
       << "</code></td><td>" << stringifyCastRole(cast.role)
       << (cast.isBackward ? ", backward" : "") << "</td><td class=\"n\">"
       << entry.total.casts << "</td><td class=\"n\">" << bytesText(entry.total)
       << "</td><td>" << escaped(cast.reason);
    if (!cast.source.empty())
      os << " <code>" << escaped(cast.source) << "</code>";
    os << "</td></tr>\n";
  }
  os << "</tbody></table></div>\n";
}

void Page::pins(const RegionGroup &group) {
  std::vector<PinGroup> list = groupPins(group);
  if (list.empty())
    return;
  os << "<div class=\"scroll\"><table><caption>What is "
        "pinned</caption><thead><tr>"
        "<th scope=\"col\">rule</th><th scope=\"col\">what</th><th "
        "scope=\"col\" class=\"n\">times</th><th scope=\"col\" "
        "class=\"n\">bytes more than in half</th><th scope=\"col\">why"
        "</th></tr></thead><tbody>\n";
  for (const PinGroup &entry : list) {
    const PinEntry &pin = *entry.first;
    os << "<tr><th scope=\"row\"><code>" << escaped(pin.rule)
       << "</code></th><td>" << escaped(pin.format + " " + pin.where)
       << "</td><td class=\"n\">" << entry.count << "</td><td class=\"n\">"
       << formatBytes(entry.bytes) << "</td><td>" << escaped(pin.reason);
    if (!pin.source.empty())
      os << " <code>" << escaped(pin.source) << "</code>";
    os << "</td></tr>\n";
  }
  os << "</tbody></table></div>\n";
}

void Page::group(const RegionGroup &group) {
  os << "<details><summary><code>" << escaped(group.label) << "</code><span>";
  if (group.regions.size() > 1)
    os << group.regions.size() << " regions, ";
  os << group.total.before.casts << " → " << group.total.after.casts
     << " conversions, " << bytesText(group.total.before) << " → "
     << bytesText(group.total.after) << "</span></summary>\n";
  rules(group);
  left(group);
  pins(group);
  printStoredHTML(group, os);
  os << "</details>\n";
}

void Page::notes(const CastReport &report) {
  if (!report.implicit.casts && !report.halfWeights.casts &&
      report.unknownOps.empty() && report.policyNotes.empty() &&
      report.notes.empty())
    return;
  os << "<h2>Notes</h2>\n";
  if (report.halfWeights.casts)
    os << "<p>" << report.halfWeights.casts
       << " weights come in as half copies that the optimizer writes ("
       << bytesText(report.halfWeights) << ").</p>\n";
  if (report.implicit.casts)
    os << "<p>Autocast makes " << report.implicit.casts
       << " further conversions (" << bytesText(report.implicit)
       << ") inside operators of this graph, where no pass sees them; save "
          "<code>ep.run_decompositions({})</code> to have them as "
          "operations.</p>\n";
  for (const std::string &note : report.notes)
    os << "<p>" << escaped(note) << ".</p>\n";
  for (const std::string &note : report.policyNotes)
    os << "<p>Policy " << escaped(note) << ".</p>\n";
  if (report.unknownOps.empty())
    return;
  os << "<p>Operators without a rule, left as they are:</p>\n<ul>\n";
  for (const auto &[name, count] : report.unknownOps)
    os << "<li><code>" << escaped(name) << "</code>, " << count << "</li>\n";
  os << "</ul>\n";
}

void Page::write(const CastReport &report) {
  head(report);
  if (!report.total.before.casts && !report.total.after.casts) {
    os << "<p>No conversions.</p>\n";
  } else {
    cards(report);
    breakdown(report);
  }
  for (const PlacementReport &placement : report.placements)
    printPlacementHTML(placement, os);
  std::vector<RegionGroup> groups = groupRegions(report);
  if (!groups.empty())
    os << "<h2>Regions</h2>\n";
  for (const RegionGroup &entry : groups)
    group(entry);
  notes(report);
  os << "</main>\n</body>\n</html>\n";
}

void mlir::mp::printHTML(const CastReport &report, llvm::raw_ostream &os) {
  Page(os).write(report);
}
