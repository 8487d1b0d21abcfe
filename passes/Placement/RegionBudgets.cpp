//===- RegionBudgets.cpp - budgets of noise of single modules -------------===//

#include "passes/Placement/RegionBudgets.h"
#include "dialect/Graph/Graph.h"
#include "passes/Placement/Rest.h"

using namespace mlir;
using namespace mlir::mp;

double mlir::mp::addedNoise(double epsilon, double traced) {
  // Errors grow by 1 + epsilon, so variances by its square.
  return ((1 + epsilon) * (1 + epsilon) - 1) * traced;
}

static bool isOf(Value root, const ModuleGlob &module) {
  Operation *producer = root.getDefiningOp();
  return producer && module.match(modulePathOf(producer->getLoc()));
}

/// Lets only what `module` computes have noise. Its open ports.
static SmallVector<int> silenceOthers(const Placement &placement,
                                      const ModuleGlob &module,
                                      PlacementProblem &problem) {
  SmallVector<int> ports;
  for (const Placement::StoredValue &stored : placement.getValues()) {
    bool isInside = isOf(stored.root, module);
    for (const Placement::Port &port : stored.ports) {
      const PlacementProblem::Port &known = problem.getPorts()[port.port];
      if (!isInside)
        problem.scaleNoise(port.port, 0);
      else if (!known.fixed && known.noise > 0)
        ports.push_back(port.port);
    }
  }
  return ports;
}

void mlir::mp::keepRegionBudgets(Placement &placement, const Policy &policy) {
  for (const PolicyBudget &budget : policy.budgets) {
    PlacementProblem region = placement.getProblem();
    SmallVector<int> ports = silenceOthers(placement, budget.module, region);
    if (ports.empty())
      continue;
    double most = addedNoise(budget.epsilon, placement.getNoise().total());
    std::optional<Solution> solution = solveWithin(region, most);
    if (!solution)
      return; // the whole problem will say so
    Solution spent = spendRest(region, std::move(*solution), most);
    llvm::DenseSet<int> refused;
    for (int port : ports)
      if (spent.assignment.ports[port] == Storage::High)
        refused.insert(port);
    placement.refuse(refused);
  }
}
