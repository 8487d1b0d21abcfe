//===- RowKeep.cpp - which elements wait for a later sweep ----------------===//

#include "codegen/CPU/Rows/RowKeep.h"
#include "codegen/CPU/Vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;

/// Bytes of all buffers of a row: on the stack, and in the first two caches.
static constexpr int64_t kMostBytes = 1 << 16;
/// Work that takes as long as storing an element and reading it again.
static constexpr int64_t kCheap = 6;

int64_t cpu::paddedColumns(const RowKernel &kernel) {
  return llvm::alignTo(kernel.columns, kLanes);
}

/// Instructions, roughly.
static int64_t workOf(Operation &op) {
  if (isa<math::AbsFOp, math::CopySignOp, math::FmaOp>(op))
    return 1;
  if (isa<math::MathDialect>(op.getDialect()))
    return 12;
  if (isa<arith::ConstantOp>(op))
    return 0;
  return isa<arith::DivFOp>(op) ? 4 : 1;
}

namespace {
/// Runs through the sweeps as the emitter does.
class Rehearsal {
public:
  Rehearsal(const RowKernel &kernel, const RowPlan &plan)
      : kernel(kernel), plan(plan) {}

  KeptValues run();

private:
  void visit(Value value);
  void visitInputs(const RowStage &stage);
  bool keep(Value value);
  int64_t workOfValue(Value value);
  int64_t workInBody(const RowStage &stage, Value inner,
                     llvm::DenseSet<Value> &seen);

  const RowKernel &kernel;
  const RowPlan &plan;
  unsigned now = 0;
  int64_t bytes = 0;
  /// The first and the last sweep that made a value.
  llvm::DenseMap<Value, std::pair<unsigned, unsigned>> made;
  KeptValues kept;
};
} // namespace

/// What leads to a value of a body.
int64_t Rehearsal::workInBody(const RowStage &stage, Value inner,
                              llvm::DenseSet<Value> &seen) {
  if (!seen.insert(inner).second)
    return 0;
  linalg::GenericOp op = stage.op;
  if (auto argument = dyn_cast<BlockArgument>(inner)) {
    auto [input, access] = inputsOf(stage)[argument.getArgNumber()];
    return access == Access::Element ? workOfValue(input) : 1;
  }
  Operation *producer = inner.getDefiningOp();
  if (producer->getBlock() != op.getBody())
    return 0;
  int64_t work = workOf(*producer);
  for (Value operand : producer->getOperands())
    work += workInBody(stage, operand, seen);
  return work;
}

int64_t Rehearsal::workOfValue(Value value) {
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage || !resultsOf(value).empty())
    return 1;
  linalg::GenericOp op = stage->op;
  Operation *yield = op.getBody()->getTerminator();
  unsigned number = cast<OpResult>(value).getResultNumber();
  llvm::DenseSet<Value> seen;
  return workInBody(*stage, yield->getOperand(number), seen);
}

/// Whether a value that was made in an earlier sweep is still there.
bool Rehearsal::keep(Value value) {
  if (kept.contains(value))
    return true;
  Kept how{made[value].first, std::nullopt};
  SmallVector<unsigned> results = resultsOf(value);
  if (!results.empty()) {
    how.result = results.front();
  } else {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    int64_t more = paddedColumns(kernel) * storedBytes(element);
    if (workOfValue(value) <= kCheap || bytes + more > kMostBytes)
      return false;
    bytes += more;
  }
  kept.insert({value, how});
  return true;
}

void Rehearsal::visit(Value value) {
  const RowStage *stage = plan.stages.lookup(value);
  if (!stage)
    return;
  auto [sweeps, isNew] = made.try_emplace(value, now, now);
  if (!isNew && sweeps->second.second == now)
    return;
  if (!isNew && keep(value))
    return;
  made[value].second = now;
  visitInputs(*stage);
}

void Rehearsal::visitInputs(const RowStage &stage) {
  for (auto [input, access] : inputsOf(stage))
    if (access == Access::Element)
      visit(input);
}

KeptValues Rehearsal::run() {
  for (const auto &[index, sweep] : llvm::enumerate(plan.sweeps)) {
    now = index;
    for (const RowStage *stage : sweep.reductions)
      visitInputs(*stage);
    for (const RowStore &store : sweep.stores)
      visit(store.value);
    for (const RowStage *stage : sweep.columnSums)
      visitInputs(*stage);
  }
  return std::move(kept);
}

KeptValues cpu::findKept(const RowKernel &kernel, const RowPlan &plan) {
  return Rehearsal(kernel, plan).run();
}
