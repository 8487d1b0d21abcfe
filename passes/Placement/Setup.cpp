//===- Setup.cpp - what mp-assign-precision decides about -----------------===//

#include "passes/Placement/Setup.h"
#include "dialect/IR/Target.h"
#include "passes/Placement/RegionBudgets.h"
#include "passes/Policy/FunctionPolicy.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp;

/// The cost model of that name or file, or what the function or its target
/// says.
static llvm::Expected<CostModel> costModelFor(func::FuncOp func,
                                              StringRef name) {
  auto given = func->getAttrOfType<StringAttr>(MPDialect::kCostModelAttrName);
  if (name.empty() && given)
    name = given.getValue();
  if (name.empty())
    name = targetOf(func).costModel;
  return loadCostModel(name.empty() ? hostCostModel() : name);
}

static PlacementOptions placementOptions(func::FuncOp func,
                                         const CostModel &costs,
                                         const AssignPrecisionOptions &pass) {
  PlacementOptions options;
  if (pass.numerics == Numerics::Relaxed)
    options.freedom = pass.freedom;
  options.hasWideResults = targetOf(func).hasHalfMatmulWithF32Result;
  options.minElements = pass.minElements;
  options.costs = &costs;
  options.launchBytes = costs.launch * costs.bandwidth;
  if (pass.precision == Half::BF16)
    options.openHalf = BFloat16Type::get(func.getContext());
  else if (pass.precision == Half::F16)
    options.openHalf = Float16Type::get(func.getContext());
  return options;
}

PlacementSetup::PlacementSetup(func::FuncOp func, CostModel model,
                               const AssignPrecisionOptions &options)
    : costs(std::move(model)), fusion(func),
      placement(func, fusion, placementOptions(func, costs, options)) {}

llvm::Expected<std::unique_ptr<PlacementSetup>>
PlacementSetup::create(func::FuncOp func,
                       const AssignPrecisionOptions &options) {
  llvm::Expected<CostModel> costs = costModelFor(func, options.costModel);
  if (!costs)
    return costs.takeError();
  llvm::Expected<std::optional<Policy>> policy = policyOf(func);
  if (!policy)
    return policy.takeError();
  std::unique_ptr<PlacementSetup> setup(
      new PlacementSetup(func, std::move(*costs), options));
  if (*policy)
    keepRegionBudgets(setup->placement, **policy);
  return setup;
}

double PlacementSetup::budgetFor(double epsilon) const {
  return addedNoise(epsilon, placement.getNoise().total());
}

double PlacementSetup::errorFactor(double noise) const {
  double total = placement.getNoise().total();
  if (noise <= 0)
    return 1;
  return total > 0 ? std::sqrt(1 + noise / total)
                   : std::numeric_limits<double>::infinity();
}
