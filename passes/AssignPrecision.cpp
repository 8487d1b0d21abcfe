//===- AssignPrecision.cpp - mp-assign-precision --------------------------===//

#include "passes/Passes.h"
#include "passes/Placement/Setup.h"
#include "passes/Placement/Solver.h"
#include "passes/RewriteLog.h"

namespace mlir::mp {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct AssignPrecision : mp::impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || numerics == Numerics::Strict)
      return;
    llvm::Expected<std::unique_ptr<PlacementSetup>> setup =
        PlacementSetup::create(func, options());
    if (!setup) {
      func.emitError(llvm::toString(setup.takeError()));
      return signalPassFailure();
    }
    const Placement &placement = (*setup)->getPlacement();
    if (placement.getValues().empty())
      return;
    std::optional<Solution> solution =
        solveWithin(placement.getProblem(), (*setup)->budgetFor(epsilon));
    if (!solution) {
      func.emitError("the types that the graph fixes leave no placement");
      return signalPassFailure();
    }
    mark(placement, solution->assignment);
    markCalls(placement, solution->assignment);
    record(func, *solution, placement.getNoise().total());
  }

  AssignPrecisionOptions options() const {
    return {numerics, epsilon, freedom, precision, costModel, minElements};
  }

private:
  void markCalls(const Placement &placement,
                 const PlacementProblem::Assignment &assignment) {
    RewriteLog log(getOperation(), getArgument());
    for (const Placement::OpenCall &open : placement.getOpenCalls()) {
      if (assignment.calls[open.call] == Storage::Low)
        open.op->setAttr(MPDialect::kComputeAsAttrName,
                         TypeAttr::get(placement.getHalfType()));
      else
        log.miss(Rule::HalfCall, open.op, whyWide(placement, open));
    }
    log.commit();
  }

  static std::string whyWide(const Placement &placement,
                             const Placement::OpenCall &open) {
    if (!open.cost.pays)
      return "stays f32: " + open.cost.verdict;
    if (placement.getProblem().getCalls()[open.call].fixed)
      return "stays f32: pinned";
    return "stays f32: conversions around it cost more than it saves (" +
           open.cost.verdict + ")";
  }

  static void mark(const Placement &placement,
                   const PlacementProblem::Assignment &assignment) {
    for (const Placement::StoredValue &stored : placement.getValues())
      for (const Placement::Port &port : stored.ports)
        if (assignment.ports[port.port] == Storage::Low && !port.isRounded &&
            isWide(stored.root, port))
          markRead(*port.use, placement.getHalfType());
    markResults(placement, assignment);
  }

  static bool isWide(Value root, const Placement::Port &port) {
    auto elementType = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getElementType();
    };
    return elementType(root).isF32() && elementType(port.use->get()).isF32();
  }

  static void markRead(OpOperand &use, Type half) {
    Operation *reader = use.getOwner();
    Builder builder(reader->getContext());
    SmallVector<Attribute> reads(reader->getNumOperands(),
                                 builder.getUnitAttr());
    if (auto old = reader->getAttrOfType<ArrayAttr>(MPDialect::kReadAsAttrName))
      reads.assign(old.begin(), old.end());
    reads[use.getOperandNumber()] = TypeAttr::get(half);
    reader->setAttr(MPDialect::kReadAsAttrName, builder.getArrayAttr(reads));
  }

  static void markResults(const Placement &placement,
                          const PlacementProblem::Assignment &assignment) {
    const PlacementProblem &problem = placement.getProblem();
    for (const Placement::StoredValue &stored : placement.getValues()) {
      const auto &value = problem.getValues()[stored.value];
      if (!value.hasFreeResult ||
          assignment.results[stored.value] == Storage::Low)
        continue;
      Operation *producer = stored.root.getDefiningOp();
      producer->setAttr(
          MPDialect::kStoreAsAttrName,
          TypeAttr::get(Float32Type::get(producer->getContext())));
    }
  }

  void record(func::FuncOp func, const Solution &solution, double total) {
    Builder builder(func.getContext());
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    func->setAttr(MPDialect::kPlacementAttrName,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr(
                           "cost", builder.getI64IntegerAttr(solution.bytes)),
                       builder.getNamedAttr("noise", number(solution.noise)),
                       builder.getNamedAttr("noise_traced", number(total)),
                       builder.getNamedAttr("noise_price",
                                            number(solution.noisePrice))}));
  }
};
} // namespace

std::optional<AssignPrecisionOptions>
mlir::mp::assignOptionsOf(const Pass &pass) {
  const auto *assign = dyn_cast<AssignPrecision>(&pass);
  return assign ? std::optional(assign->options()) : std::nullopt;
}
