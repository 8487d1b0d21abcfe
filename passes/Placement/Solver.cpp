//===- Solver.cpp - the best placement within a noise budget --------------===//

#include "passes/Placement/Solver.h"
#include "passes/Placement/Parts.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir::mp;
using llvm::ArrayRef;

using Assignment = PlacementProblem::Assignment;

namespace {
/// Solves the parts of a problem at one price of noise after the other.
class Search {
public:
  explicit Search(const PlacementProblem &whole)
      : whole(whole), parts(takeApart(whole)) {}

  /// False if what is fixed contradicts itself.
  bool solveFree() {
    for (PlacementPart &part : parts) {
      auto assignment = part.problem.solve(0);
      if (!assignment)
        return false;
      part.assignment = std::move(*assignment);
      if (part.isNoisy)
        open.push_back(&part);
    }
    return true;
  }

  double noise() const {
    double sum = 0;
    for (const PlacementPart &part : parts)
      sum += part.problem.noiseOf(part.assignment);
    return sum;
  }

  /// Finds the least price at which the noise is within `budget`, between two
  /// prices. Roundings only go as the price rises: a part that is the same at
  /// both ends of the bracket is the same within.
  double raisePrice(double low, double high, double budget) {
    std::vector<Assignment> cheap, dear = solveOpen(high);
    for (PlacementPart *part : open)
      cheap.push_back(part->assignment);
    double closed = noise() - noiseOfOpen(cheap);
    // A port can save more than its own bytes, a launch or what is kept.
    while (closed + noiseOfOpen(dear) > budget && high < PriceRange::kHighest) {
      high *= 64;
      dear = solveOpen(high);
    }
    for (int step = 0; step < PriceRange::kSteps; ++step) {
      closed += close(cheap, dear);
      double middle = std::sqrt(low * high);
      std::vector<Assignment> solved = solveOpen(middle);
      bool fits = closed + noiseOfOpen(solved) <= budget;
      (fits ? high : low) = middle;
      (fits ? dear : cheap) = std::move(solved);
    }
    for (auto [part, assignment] : llvm::zip_equal(open, dear))
      part->assignment = std::move(assignment);
    return high;
  }

  Solution solution(double price) const {
    Solution result;
    Assignment &all = result.assignment;
    all.calls.resize(whole.getCalls().size());
    all.results.resize(whole.getValues().size());
    all.ports.resize(whole.getPorts().size());
    for (const PlacementPart &part : parts)
      part.putInto(all);
    all.cost = *whole.costOf(all, price);
    result.noise = whole.noiseOf(all);
    result.bytes = *whole.costOf(all, 0);
    result.noisePrice = price;
    return result;
  }

private:
  std::vector<Assignment> solveOpen(double price) const {
    std::vector<Assignment> result;
    result.reserve(open.size());
    for (PlacementPart *part : open)
      result.push_back(*part->problem.solve(price));
    return result;
  }

  double noiseOfOpen(ArrayRef<Assignment> assignments) const {
    double sum = 0;
    for (auto [part, assignment] : llvm::zip_equal(open, assignments))
      sum += part->problem.noiseOf(assignment);
    return sum;
  }

  /// Drops the parts that both ends of the bracket agree on; their noise.
  double close(std::vector<Assignment> &cheap, std::vector<Assignment> &dear) {
    double sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      if (cheap[i].ports == dear[i].ports) {
        sum += open[i]->problem.noiseOf(dear[i]);
        open[i]->assignment = std::move(dear[i]);
        continue;
      }
      open[kept] = open[i];
      if (kept != i) {
        cheap[kept] = std::move(cheap[i]);
        dear[kept] = std::move(dear[i]);
      }
      ++kept;
    }
    open.resize(kept);
    cheap.resize(kept);
    dear.resize(kept);
    return sum;
  }

  const PlacementProblem &whole;
  std::vector<PlacementPart> parts;
  std::vector<PlacementPart *> open; ///< those that a price can change
};
} // namespace

PriceRange::PriceRange(const PlacementProblem &problem) {
  for (const PlacementProblem::Port &port : problem.getPorts())
    if (port.noise > 0) {
      low = std::min(low, 1 / port.noise);
      high = std::max(high, 64 * (double(port.readHigh) + 1) / port.noise);
    }
}

std::optional<Solution> mlir::mp::solveWithin(const PlacementProblem &problem,
                                              double budget) {
  Search search(problem);
  if (!search.solveFree())
    return std::nullopt;
  if (search.noise() <= budget)
    return search.solution(0);
  PriceRange prices(problem);
  return search.solution(search.raisePrice(prices.low, prices.high, budget));
}
