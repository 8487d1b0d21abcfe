//===- Rest.cpp - what a budget of noise has left -------------------------===//

#include "passes/Placement/Rest.h"
#include "passes/Placement/Parts.h"

#include <queue>

using namespace mlir::mp;

using Assignment = PlacementProblem::Assignment;

namespace {
/// The next placement of a part with more noise, and what it saves.
struct Step {
  int part = -1;
  Assignment assignment;
  double noise = 0, bytes = 0; ///< more noise, fewer bytes

  bool operator<(const Step &other) const {
    return bytes * other.noise < other.bytes * noise;
  }
};

/// Spends a rest on one part after the other.
class Spender {
public:
  Spender(const PlacementProblem &problem, const Solution &from)
      : price(from.noisePrice), parts(takeApart(problem)) {
    for (int i = 0, end = parts.size(); i < end; ++i)
      if (parts[i].isNoisy) {
        parts[i].takeFrom(from.assignment);
        findStep(i, price);
      }
  }

  /// What is left of `rest`.
  double spend(double rest) {
    while (!steps.empty()) {
      Step step = steps.top();
      steps.pop();
      if (step.noise > rest)
        continue; // its later steps are larger still
      rest -= step.noise;
      parts[step.part].assignment = std::move(step.assignment);
      findStep(step.part, price);
    }
    return rest;
  }

  void putInto(Assignment &whole) const {
    for (const PlacementPart &part : parts)
      if (part.isNoisy)
        part.putInto(whole);
  }

private:
  /// Prices that are tried below that of the solution, and then none.
  static constexpr int kPrices = 6;

  void findStep(int number, double from) {
    const PlacementProblem &problem = parts[number].problem;
    const Assignment &now = parts[number].assignment;
    double noise = problem.noiseOf(now);
    int64_t bytes = *problem.costOf(now, 0);
    for (int i = 1; i <= kPrices; ++i, from /= 4) {
      auto next = problem.solve(i == kPrices ? 0 : from / 4);
      Step step{number, {}, problem.noiseOf(*next) - noise, 0};
      step.bytes = double(bytes - *problem.costOf(*next, 0));
      if (step.noise <= 0 || step.bytes <= 0)
        continue;
      step.assignment = std::move(*next);
      return steps.push(std::move(step));
    }
  }

  double price;
  std::vector<PlacementPart> parts;
  std::priority_queue<Step> steps;
};
} // namespace

Solution mlir::mp::spendRest(const PlacementProblem &problem, Solution solution,
                             double budget) {
  double rest = budget - solution.noise;
  // At no price of noise there was nothing to refuse.
  if (rest <= 0 || solution.noisePrice == 0)
    return solution;
  Spender spender(problem, solution);
  if (spender.spend(rest) == rest)
    return solution;
  spender.putInto(solution.assignment);
  solution.assignment.cost =
      *problem.costOf(solution.assignment, solution.noisePrice);
  solution.noise = problem.noiseOf(solution.assignment);
  solution.bytes = *problem.costOf(solution.assignment, 0);
  return solution;
}
