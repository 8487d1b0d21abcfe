//===- PlacementReport.cpp - which types are stored, and why --------------===//

#include "passes/Report/PlacementReport.h"
#include "passes/Placement/Rest.h"
#include "passes/Report/StoredReasons.h"
#include "passes/Report/Unpinning.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp;

/// Budgets that every frontier has, beside the one that was asked for.
static constexpr double kEpsilons[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

std::string mlir::mp::errorText(double error) {
  return std::isfinite(error) ? llvm::formatv("x {0:F3}", error).str()
                              : "unknown";
}

static FrontierPoint pointOf(const Solution &solution,
                             const PlacementSetup &setup) {
  FrontierPoint point;
  point.bytes = solution.bytes;
  point.savedBytes =
      setup.getPlacement().getProblem().keptCostOf(solution.assignment);
  point.error = setup.errorFactor(solution.noise);
  return point;
}

static std::vector<FrontierPoint>
frontierOf(Frontier &frontier, const PlacementSetup &setup, double chosen) {
  std::vector<double> epsilons(std::begin(kEpsilons), std::end(kEpsilons));
  if (!llvm::is_contained(epsilons, chosen))
    epsilons.insert(llvm::upper_bound(epsilons, chosen), chosen);
  const PlacementProblem &problem = setup.getPlacement().getProblem();
  std::vector<FrontierPoint> points;
  for (double epsilon : epsilons) {
    double budget = setup.budgetFor(epsilon);
    // What the pass would do.
    Solution spent = spendRest(problem, *frontier.within(budget), budget);
    points.push_back(pointOf(spent, setup));
    points.back().epsilon = epsilon;
    points.back().isChosen = epsilon == chosen;
  }
  double unlimited = std::numeric_limits<double>::infinity();
  points.push_back(pointOf(*frontier.within(unlimited), setup));
  return points;
}

/// Bytes that one percent more of error is worth at the price of noise.
static int64_t bytesPerPercent(const Solution &solution,
                               const PlacementSetup &setup) {
  double error = setup.errorFactor(solution.noise);
  if (!std::isfinite(error))
    return 0;
  double total = setup.getPlacement().getNoise().total();
  double noise = ((error + 0.01) * (error + 0.01) - error * error) * total;
  return std::llround(solution.noisePrice * noise);
}

static std::string nameOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

llvm::Expected<std::optional<PlacementReport>>
mlir::mp::makePlacementReport(func::FuncOp func,
                              const AssignPrecisionOptions &options) {
  if (func.isExternal() || options.numerics == Numerics::Strict)
    return std::nullopt;
  auto setup = PlacementSetup::create(func, options);
  if (!setup)
    return setup.takeError();
  const Placement &placement = (*setup)->getPlacement();
  const PlacementProblem &problem = placement.getProblem();
  if (placement.getValues().empty())
    return std::nullopt;
  Frontier frontier(problem);
  double budget = (*setup)->budgetFor(options.epsilon);
  const Solution *vertex = frontier.within(budget);
  if (!vertex)
    return llvm::createStringError(
        "the types that the graph fixes leave no placement");
  const Solution chosen = spendRest(problem, *vertex, budget);

  PlacementReport report;
  report.function = func.getName().str();
  report.half = nameOf(placement.getHalfType());
  report.epsilon = options.epsilon;
  report.values = problem.getValues().size();
  report.reads = problem.getPorts().size();
  FrontierPoint point = pointOf(chosen, **setup);
  report.cut = chosen.assignment.cost;
  report.bytes = point.bytes;
  report.savedBytes = point.savedBytes;
  report.error = point.error;
  report.allowedError = 1 + options.epsilon;
  report.bytesPerPercent = bytesPerPercent(chosen, **setup);
  if (options.numerics == Numerics::Relaxed)
    report.frontier = frontierOf(frontier, **setup, options.epsilon);
  // Compared with other vertices of the hull.
  PinCosts pins(**setup, frontier, *vertex, budget);
  report.rules = pins.byRule();
  report.pins = pins.largest();
  report.stored = describeStored(**setup, chosen);
  return report;
}
