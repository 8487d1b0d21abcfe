//===- PlacementText.cpp - a placement for a terminal ---------------------===//

#include "passes/Report/PlacementPrinters.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::mp;

std::string mlir::mp::epsilonText(std::optional<double> epsilon) {
  if (!epsilon)
    return "no limit";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", *epsilon);
  return text;
}

std::string mlir::mp::shareText(int64_t part, int64_t whole) {
  double share = whole ? 100.0 * part / whole : 100;
  return llvm::formatv("{0:F1} %", share);
}

static void printFrontier(const PlacementReport &placement,
                          llvm::raw_ostream &os) {
  if (placement.frontier.empty())
    return;
  os << llvm::formatv("\n  {0,-10} {1,22} {2,24} {3,10}\n", "epsilon",
                      "moved and kept", "saved for backward", "error");
  const FrontierPoint &first = placement.frontier.front();
  auto bytes = [](int64_t part, int64_t whole) {
    return formatBytes(part) +
           llvm::formatv(" {0,8}", shareText(part, whole)).str();
  };
  for (const FrontierPoint &point : placement.frontier)
    os << llvm::formatv(
        "  {0,-10} {1,22} {2,24} {3,10}{4}\n", epsilonText(point.epsilon),
        bytes(point.bytes, first.bytes),
        bytes(point.savedBytes, first.savedBytes), errorText(point.error),
        point.isChosen ? "  chosen" : "");
}

static std::string lessText(const Unpinning &unpinning) {
  if (unpinning.bytes <= 0)
    return "nothing";
  std::string text = formatBytes(unpinning.bytes) + " less";
  if (unpinning.savedBytes > 0)
    text +=
        ", " + formatBytes(unpinning.savedBytes) + " of it saved for backward";
  text += ", error " + errorText(unpinning.error);
  return unpinning.isWithin ? text : text + ", which epsilon does not allow";
}

static void printUnpinnings(const PlacementReport &placement,
                            llvm::raw_ostream &os) {
  if (!placement.rules.empty())
    os << "\n  without the pins of a rule, each solved again within the same "
          "epsilon\n";
  for (const Unpinning &rule : placement.rules) {
    std::string head = llvm::formatv("    {0} ({1} pin{2}): ", rule.rule,
                                     rule.pins, rule.pins == 1 ? "" : "s");
    os << head;
    printWrapped(os, lessText(rule), head.size(), 6);
  }
  if (!placement.pins.empty())
    os << "\n  without one pin\n";
  for (const Unpinning &pin : placement.pins) {
    std::string head = llvm::formatv("    {0}, {1} of {2}", pin.rule, pin.op,
                                     regionLabel(pin.region));
    if (pin.pins > 1)
      head += llvm::formatv(" ({0} alike)", pin.pins).str();
    os << head;
    std::string tail = ": " + lessText(pin);
    if (!pin.source.empty())
      tail += " [" + pin.source + "]";
    printWrapped(os, tail, head.size(), 6);
  }
}

void mlir::mp::printPlacementText(const PlacementReport &placement,
                                  llvm::raw_ostream &os) {
  os << llvm::formatv("\nstorage types of {0}: f32 or {1}, by a minimum cut "
                      "over {2} values and {3} reads\n",
                      placement.function, placement.half, placement.values,
                      placement.reads)
     << llvm::formatv("  {0} moved and kept, {1} of it saved for backward\n",
                      formatBytes(placement.bytes),
                      formatBytes(placement.savedBytes));
  if (!placement.frontier.empty()) {
    os << llvm::formatv(
        "  error {0} of {1} allowed (epsilon {2}); value of "
        "the cut with the price of error: {3}\n",
        errorText(placement.error), errorText(placement.allowedError),
        epsilonText(placement.epsilon), formatBytes(placement.cut));
    if (placement.bytesPerPercent > 0)
      os << "  one more percent of error would save about "
         << formatBytes(placement.bytesPerPercent) << '\n';
  }
  printFrontier(placement, os);
  printUnpinnings(placement, os);
}

void mlir::mp::printStoredText(const RegionGroup &group,
                               llvm::raw_ostream &os) {
  for (const StoredGroup &stored : groupStored(group)) {
    const StoredEntry &entry = stored.total;
    std::string head = llvm::formatv(
        "  {0,4} stored {1}, {2} {3}{4}, {5}: ", stored.count, entry.types,
        entry.shape, entry.op, entry.isBackward ? " in backward" : "",
        formatBytes(entry.bytes));
    os << head;
    std::string tail = storedText(entry);
    if (!entry.source.empty())
      tail += " [" + entry.source + "]";
    printWrapped(os, tail, head.size(), 11);
  }
}
