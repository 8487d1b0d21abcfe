//===- AssignPrecision.cpp - mp-assign-precision --------------------------===//

#include "dialect/IR/Pins.h"
#include "passes/Passes.h"
#include "passes/Placement/Rest.h"
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
    solution = spendRest(placement.getProblem(), std::move(*solution),
                         (*setup)->budgetFor(epsilon));
    mark(placement, solution->assignment);
    markCalls(placement, solution->assignment);
    record(func, placement, *solution);
  }

  AssignPrecisionOptions options() const {
    return {numerics, epsilon, freedom, precision, costModel, minElements};
  }

private:
  void markCalls(const Placement &placement,
                 const PlacementProblem::Assignment &assignment) {
    RewriteLog log(getOperation(), getArgument());
    for (const Placement::OpenCall &open : placement.getOpenCalls()) {
      if (assignment.calls[open.call] == Storage::High) {
        log.miss(Rule::HalfCall, open.op, whyWide(placement, open));
        continue;
      }
      open.op->setAttr(MPDialect::kComputeAsAttrName,
                       TypeAttr::get(placement.getHalfType()));
      // Also of results that are too small to be placed.
      if (llvm::any_of(open.op->getResults(),
                       [](Value result) { return isPinnedWide(result); }))
        markWideResult(open.op);
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
    for (const Placement::StoredValue &stored : placement.getValues()) {
      bool isReadHalf = false, isReadWide = false;
      for (const Placement::Port &port : stored.ports) {
        // A call whose type is open converts its operands itself.
        bool isOfCall = placement.getProblem().getPorts()[port.port].call >= 0;
        if (port.isRounded || isOfCall || !isWide(stored.root, port))
          continue;
        bool isLow = assignment.ports[port.port] == Storage::Low;
        (isLow ? isReadHalf : isReadWide) = true;
        if (isLow)
          markRead(*port.use, placement.getHalfType());
      }
      if (isReadHalf && isReadWide)
        keepStored(stored.root);
    }
    markResults(placement, assignment);
  }

  /// A value that is kept in half for some readers may no longer need memory
  /// by itself; a fuser would then compute it again in each of the others.
  static void keepStored(Value root) {
    Operation *producer = root.getDefiningOp();
    if (producer && producer->getNumResults() == 1 &&
        kernelRoleOf(producer) == KernelRole::Pointwise)
      producer->setAttr(MPDialect::kStoreAsAttrName,
                        TypeAttr::get(Float32Type::get(root.getContext())));
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
      // A call in f32 has no other result.
      if (!value.hasFreeResult ||
          assignment.calls[value.owner] == Storage::High ||
          assignment.results[stored.value] == Storage::Low)
        continue;
      markWideResult(stored.root.getDefiningOp());
    }
  }

  static void markWideResult(Operation *op) {
    op->setAttr(MPDialect::kStoreAsAttrName,
                TypeAttr::get(Float32Type::get(op->getContext())));
  }

  void record(func::FuncOp func, const Placement &placement,
              const Solution &solution) {
    Builder builder(func.getContext());
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    NamedAttrList entry;
    entry.append("cost", builder.getI64IntegerAttr(solution.bytes));
    entry.append("noise", number(solution.noise));
    entry.append("noise_traced", number(placement.getNoise().total()));
    entry.append("noise_price", number(solution.noisePrice));
    if (numerics == Numerics::Relaxed)
      entry.append("epsilon", number(epsilon));
    if (precision != Half::None)
      entry.append("precision", TypeAttr::get(placement.getHalfType()));
    func->setAttr(MPDialect::kPlacementAttrName,
                  entry.getDictionary(func.getContext()));
  }
};
} // namespace

std::optional<AssignPrecisionOptions>
mlir::mp::assignOptionsOf(const Pass &pass) {
  const auto *assign = dyn_cast<AssignPrecision>(&pass);
  return assign ? std::optional(assign->options()) : std::nullopt;
}
