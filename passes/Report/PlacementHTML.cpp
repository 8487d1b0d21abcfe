//===- PlacementHTML.cpp - a placement on the page of a report ------------===//

#include "passes/Report/PlacementPrinters.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::mp;

static std::string escaped(StringRef text) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  llvm::printHTMLEscaped(text, stream);
  return result;
}

namespace {
/// A table, its rows made of cells that are HTML.
class Table {
public:
  /// Columns whose names begin with '#' hold numbers.
  Table(StringRef caption, ArrayRef<StringRef> columns, llvm::raw_ostream &os)
      : columns(columns), os(os) {
    os << "<div class=\"scroll\"><table><caption>" << caption
       << "</caption><thead><tr>";
    for (StringRef column : columns)
      os << "<th scope=\"col\"" << numeric(column) << ">" << column.ltrim('#')
         << "</th>";
    os << "</tr></thead><tbody>\n";
  }
  ~Table() { os << "</tbody></table></div>\n"; }
  Table(const Table &) = delete;
  Table &operator=(const Table &) = delete;

  void row(ArrayRef<std::string> cells, StringRef style = "") {
    os << "<tr" << (style.empty() ? "" : " class=\"" + style.str() + "\"")
       << ">";
    for (auto [i, cell] : llvm::enumerate(cells))
      os << (i ? "<td" + numeric(columns[i]) : "<th scope=\"row\"") << ">"
         << cell << (i ? "</td>" : "</th>");
    os << "</tr>\n";
  }

private:
  static std::string numeric(StringRef column) {
    return column.starts_with("#") ? " class=\"n\"" : "";
  }

  ArrayRef<StringRef> columns;
  llvm::raw_ostream &os;
};
} // namespace

static std::string code(StringRef text) {
  return text.empty() ? "" : "<code>" + escaped(text) + "</code>";
}

static std::string place(StringRef source) {
  return source.empty() ? "" : " " + code(source);
}

static void printHead(const PlacementReport &placement, llvm::raw_ostream &os) {
  os << "<h2>Storage types of " << code(placement.function) << "</h2>\n<p>"
     << llvm::formatv("A minimum cut over {0} values and {1} reads chooses "
                      "between f32 and {2}: {3} moved and kept, {4} of it "
                      "saved for backward.",
                      placement.values, placement.reads, placement.half,
                      formatBytes(placement.bytes),
                      formatBytes(placement.savedBytes));
  if (placement.frontier.empty()) {
    os << "</p>\n";
    return;
  }
  os << llvm::formatv(
      " The estimated error grows {0}; epsilon {1} allows "
      "{2}. Value of the cut with the price of error: {3}.",
      errorText(placement.error), epsilonText(placement.epsilon),
      errorText(placement.allowedError), formatBytes(placement.cut));
  if (placement.bytesPerPercent > 0)
    os << " One more percent of error would save about "
       << formatBytes(placement.bytesPerPercent) << ".";
  os << "</p>\n";
}

static void printFrontier(const PlacementReport &placement,
                          llvm::raw_ostream &os) {
  if (placement.frontier.empty())
    return;
  StringRef columns[] = {"epsilon", "#moved and kept",
                         "#share",  "#saved for backward",
                         "#share",  "#error"};
  Table table("The frontier: bytes against the budget of error", columns, os);
  const FrontierPoint &first = placement.frontier.front();
  for (const FrontierPoint &point : placement.frontier)
    table.row({epsilonText(point.epsilon) + (point.isChosen ? ", chosen" : ""),
               formatBytes(point.bytes), shareText(point.bytes, first.bytes),
               formatBytes(point.savedBytes),
               shareText(point.savedBytes, first.savedBytes),
               errorText(point.error)},
              point.isChosen ? "chosen" : "");
}

static std::string errorOf(const Unpinning &unpinning) {
  return errorText(unpinning.error) +
         (unpinning.isWithin ? "" : ", not allowed");
}

static void printRules(const PlacementReport &placement,
                       llvm::raw_ostream &os) {
  if (placement.rules.empty())
    return;
  StringRef columns[] = {"rule", "#pins", "#bytes less",
                         "#of it saved for backward", "#error"};
  Table table("Without the pins of a rule, solved again within the same "
              "epsilon",
              columns, os);
  for (const Unpinning &rule : placement.rules)
    table.row({code(rule.rule), std::to_string(rule.pins),
               formatBytes(rule.bytes), formatBytes(rule.savedBytes),
               errorOf(rule)});
}

static void printPins(const PlacementReport &placement, llvm::raw_ostream &os) {
  if (placement.pins.empty())
    return;
  StringRef columns[] = {"rule",        "where",  "#alike",
                         "#bytes less", "#error", "why it is pinned"};
  Table table("Without one pin: those that hold most", columns, os);
  for (const Unpinning &pin : placement.pins)
    table.row({code(pin.rule),
               code(regionLabel(pin.region)) + " " + code(pin.op),
               std::to_string(pin.pins), formatBytes(pin.bytes), errorOf(pin),
               escaped(pin.reason) + place(pin.source)});
}

void mlir::mp::printPlacementHTML(const PlacementReport &placement,
                                  llvm::raw_ostream &os) {
  printHead(placement, os);
  printFrontierPlot(placement, os);
  printFrontier(placement, os);
  printRules(placement, os);
  printPins(placement, os);
}

void mlir::mp::printStoredHTML(const RegionGroup &group,
                               llvm::raw_ostream &os) {
  std::vector<StoredGroup> list = groupStored(group);
  if (list.empty())
    return;
  StringRef columns[] = {"value", "shape", "type", "#times", "#bytes", "why"};
  Table table("What is stored: the largest values", columns, os);
  for (const StoredGroup &stored : list) {
    const StoredEntry &entry = stored.total;
    table.row({code(entry.op) + (entry.isBackward ? ", backward" : ""),
               code(entry.shape), entry.types, std::to_string(stored.count),
               formatBytes(entry.bytes),
               escaped(storedText(entry)) + place(entry.source)});
  }
}
