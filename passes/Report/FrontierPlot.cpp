//===- FrontierPlot.cpp - the frontier as a picture -----------------------===//
//
// Two lines over the budgets, as shares of what the first budget costs. Lines
// are told apart by colour, by their dots and by a label at their end.
//
//===----------------------------------------------------------------------===//

#include "passes/Report/PlacementPrinters.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

namespace {
class FrontierPlot {
public:
  FrontierPlot(const PlacementReport &placement, llvm::raw_ostream &os)
      : points(placement.frontier), os(os) {
    double least = 100;
    for (const FrontierPoint &point : points)
      least = std::min({least, shareOf(point, &FrontierPoint::bytes),
                        shareOf(point, &FrontierPoint::savedBytes)});
    lowest = std::max(0.0, std::floor((least - 1) / 10) * 10);
  }

  void print();

private:
  using Bytes = int64_t FrontierPoint::*;
  static constexpr int kWidth = 720, kHeight = 330;
  static constexpr int kLeft = 56, kRight = 560, kTop = 34, kBottom = 260;

  double shareOf(const FrontierPoint &point, Bytes bytes) const {
    int64_t whole = points.front().*bytes;
    return whole ? 100.0 * (point.*bytes) / whole : 100;
  }
  double xOf(size_t index) const {
    return kLeft + 20 +
           double(kRight - kLeft - 40) * index / (points.size() - 1);
  }
  double yOf(double share) const {
    return kBottom - (share - lowest) / (100 - lowest) * (kBottom - kTop);
  }

  void text(double x, double y, StringRef anchor, StringRef words,
            StringRef style = "");
  void axes();
  void line(Bytes bytes, StringRef style, StringRef what);
  void dot(size_t index, Bytes bytes, StringRef style, StringRef what);
  void ends();

  ArrayRef<FrontierPoint> points;
  llvm::raw_ostream &os;
  double lowest; ///< share at the bottom
};
} // namespace

void FrontierPlot::text(double x, double y, StringRef anchor, StringRef words,
                        StringRef style) {
  os << llvm::formatv("<text x=\"{0:F1}\" y=\"{1:F1}\" text-anchor=\"{2}\""
                      " class=\"{3}\">{4}</text>\n",
                      x, y, anchor, style, words);
}

void FrontierPlot::axes() {
  int step = 100 - lowest > 50 ? 20 : 10;
  for (int share = 100; share >= lowest; share -= step) {
    double y = yOf(share);
    os << llvm::formatv("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" "
                        "y1=\"{2:F1}\" y2=\"{2:F1}\"/>\n",
                        kLeft, kRight, y);
    text(kLeft - 8, y + 4, "end", llvm::formatv("{0} %", share).str(), "dim");
  }
  for (auto [i, point] : llvm::enumerate(points)) {
    text(xOf(i), kBottom + 20, "middle", epsilonText(point.epsilon), "dim");
    if (!point.isChosen)
      continue;
    os << llvm::formatv("<line class=\"chosen\" x1=\"{0:F1}\" x2=\"{0:F1}\" "
                        "y1=\"{1}\" y2=\"{2}\"/>\n",
                        xOf(i), kTop - 8, kBottom);
    text(xOf(i), kTop - 14, "middle", "chosen");
  }
  text((kLeft + kRight) / 2.0, kBottom + 46, "middle",
       "epsilon: share by which the estimated error may grow", "dim");
}

void FrontierPlot::dot(size_t index, Bytes bytes, StringRef style,
                       StringRef what) {
  const FrontierPoint &point = points[index];
  double x = xOf(index), y = yOf(shareOf(point, bytes));
  std::string title = llvm::formatv(
      "epsilon {0}: {1} {2}, error {3}", epsilonText(point.epsilon),
      formatBytes(point.*bytes), what, errorText(point.error));
  os << llvm::formatv("<circle class=\"dot {0}\" cx=\"{1:F1}\" cy=\"{2:F1}\" "
                      "r=\"4\"><title>{3}</title></circle>\n",
                      style, x, y, title);
}

void FrontierPlot::line(Bytes bytes, StringRef style, StringRef what) {
  os << "<polyline class=\"line " << style << "\" points=\"";
  for (auto [i, point] : llvm::enumerate(points))
    os << llvm::formatv("{0:F1},{1:F1} ", xOf(i), yOf(shareOf(point, bytes)));
  os << "\"/>\n";
  for (size_t i = 0; i < points.size(); ++i)
    dot(i, bytes, style, what);
}

/// The names of the lines, apart from each other.
void FrontierPlot::ends() {
  double moved = yOf(shareOf(points.back(), &FrontierPoint::bytes)) + 4;
  double saved = yOf(shareOf(points.back(), &FrontierPoint::savedBytes)) + 4;
  if (std::abs(moved - saved) < 16)
    (moved <= saved ? saved : moved) = std::min(moved, saved) + 16;
  text(kRight + 2, moved, "start", "● moved and kept");
  text(kRight + 2, saved, "start", "○ saved for backward");
}

void FrontierPlot::print() {
  os << "<figure>\n<svg viewBox=\"0 0 " << kWidth << ' ' << kHeight
     << "\" role=\"img\" aria-label=\"Bytes against the budget of error; the "
        "table below has the figures\">\n";
  axes();
  line(&FrontierPoint::bytes, "moved", "moved and kept");
  line(&FrontierPoint::savedBytes, "saved", "saved for backward");
  ends();
  os << "</svg>\n<figcaption>Bytes as a share of those at epsilon 0, where no "
        "rounding adds to the error.";
  if (lowest > 0)
    os << llvm::formatv(" The axis begins at {0:F0} %.", lowest);
  os << "</figcaption>\n</figure>\n";
}

void mlir::mp::printFrontierPlot(const PlacementReport &placement,
                                 llvm::raw_ostream &os) {
  if (placement.frontier.size() > 1)
    FrontierPlot(placement, os).print();
}
