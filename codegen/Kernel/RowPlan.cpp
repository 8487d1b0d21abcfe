//===- RowPlan.cpp - which sweep over a row does what ---------------------===//

#include "codegen/Kernel/RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp;

SmallVector<std::pair<Value, Access>>
mlir::mp::inputsOf(const RowStage &stage) {
  linalg::GenericOp op = stage.op;
  return llvm::to_vector(
      llvm::map_range(llvm::zip_equal(op.getInputs(), stage.accesses),
                      [](auto pair) -> std::pair<Value, Access> {
                        return {std::get<0>(pair), std::get<1>(pair)};
                      }));
}

ResultRange mlir::mp::resultsOf(const RowStage &stage) {
  linalg::GenericOp op = stage.op;
  return op->getResults();
}

bool RowPlan::hasRowReductions() const {
  return llvm::any_of(
      sweeps, [](const Sweep &sweep) { return !sweep.reductions.empty(); });
}

unsigned RowPlan::levelOf(Value value) const { return levels.lookup(value); }

/// The level of what a stage reads.
static unsigned inputLevel(const RowPlan &plan, const RowStage &stage) {
  unsigned level = 0;
  for (auto [input, access] : inputsOf(stage))
    level = std::max(level, plan.levelOf(input));
  return level;
}

static Sweep &sweepAt(RowPlan &plan, unsigned level) {
  if (plan.sweeps.size() <= level)
    plan.sweeps.resize(level + 1);
  return plan.sweeps[level];
}

static void addStage(RowPlan &plan, const RowStage &stage) {
  unsigned level = inputLevel(plan, stage);
  bool isReduction = stage.kind == RowStage::Kind::RowReduction;
  for (Value result : resultsOf(stage)) {
    plan.stages[result] = &stage;
    plan.levels[result] = isReduction ? level + 1 : level;
  }
  if (isReduction)
    sweepAt(plan, level).reductions.push_back(&stage);
  if (stage.kind != RowStage::Kind::ColumnReduction)
    return;
  sweepAt(plan, level).columnSums.push_back(&stage);
  plan.columnSums.push_back(&stage);
}

static Access accessOf(RowStage::Kind kind) {
  switch (kind) {
  case RowStage::Kind::Pointwise:
    return Access::Element;
  case RowStage::Kind::RowReduction:
  case RowStage::Kind::RowPointwise:
    return Access::Row;
  case RowStage::Kind::ColumnReduction:
  case RowStage::Kind::ColumnPointwise:
    return Access::Column;
  }
  llvm_unreachable("all kinds of stages are handled");
}

static void addStores(RowPlan &plan, const RowStage &stage, Value value) {
  Access access = accessOf(stage.kind);
  for (unsigned result : resultsOf(value)) {
    RowStore store = {value, result, access};
    if (access == Access::Element)
      sweepAt(plan, plan.levelOf(value)).stores.push_back(store);
    else if (access == Access::Row)
      plan.rowStores.push_back(store);
    else
      plan.columnStores.push_back(store);
  }
}

namespace {
/// Runs through the sweeps as the emitter does, to see which elements wait for
/// a later one.
class Rehearsal {
public:
  explicit Rehearsal(const RowPlan &plan) : plan(plan) {}

  int64_t keptHalves() {
    for (const auto &[index, sweep] : llvm::enumerate(plan.sweeps)) {
      now = index;
      for (const RowStage *stage : sweep.reductions)
        visitInputs(*stage);
      for (const RowStage *stage : sweep.columnSums)
        visitInputs(*stage);
      for (const RowStore &store : sweep.stores)
        visit(store.value);
    }
    return mostAlive();
  }

private:
  struct Life {
    unsigned begin, end;
  };

  void visitInputs(const RowStage &stage) {
    for (auto [input, access] : inputsOf(stage))
      if (access == Access::Element)
        visit(input);
  }

  void visit(Value value) {
    auto [life, isNew] = lives.try_emplace(value, Life{now, now});
    life->second.end = now;
    const RowStage *stage = plan.stages.lookup(value);
    if (isNew && stage)
      visitInputs(*stage);
  }

  /// Values stay as they were read or made.
  int64_t halvesOf(Value value) const {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    return element.getIntOrFloatBitWidth() <= 16 ? 1 : 2;
  }

  int64_t mostAlive() const {
    int64_t most = 0;
    for (unsigned sweep = 0; sweep < plan.sweeps.size(); ++sweep) {
      int64_t halves = 0;
      for (const auto &[value, life] : lives)
        if (life.begin <= sweep && sweep < life.end)
          halves += halvesOf(value);
      most = std::max(most, halves);
    }
    return most;
  }

  const RowPlan &plan;
  unsigned now = 0;
  llvm::MapVector<Value, Life> lives;
};
} // namespace

TypedAttr mlir::mp::neutralOf(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  Builder b(type.getContext());
  if (!isa<FloatType>(type))
    return b.getZeroAttr(type);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return b.getFloatAttr(type, APFloat::getInf(semantics, /*Negative=*/true));
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(combiner))
    return b.getFloatAttr(type, APFloat::getInf(semantics));
  return b.getFloatAttr(type, APFloat::getZero(semantics));
}

FailureOr<RowPlan> mlir::mp::planRows(const RowKernel &kernel) {
  RowPlan plan;
  if (ShapedType::isDynamic(kernel.columns))
    return func::FuncOp(kernel.func)
        .emitError("row kernels need a static number of columns");
  for (const RowStage &stage : kernel.stages)
    addStage(plan, stage);
  for (const RowStage &stage : kernel.stages)
    for (Value result : resultsOf(stage))
      addStores(plan, stage, result);
  // Even a kernel of row values alone sweeps once.
  sweepAt(plan, 0);
  plan.keptHalves = Rehearsal(plan).keptHalves();
  return plan;
}
