//===- RunAtOnce.cpp - whether operations can become one ------------------===//

#include "passes/Outline/Candidate.h"

using namespace mlir;
using namespace mlir::mp;

/// Looking further than this is not worth the time; it counts as no.
static constexpr unsigned kMaxVisited = 4096;

static Operation *firstOf(const llvm::SetVector<Operation *> &ops) {
  return *std::min_element(
      ops.begin(), ops.end(),
      [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

static Operation *lastOf(const llvm::SetVector<Operation *> &ops) {
  return *std::max_element(
      ops.begin(), ops.end(),
      [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

/// What has effects must not change its place among the others.
static bool crossesEffect(Operation *first, Operation *last) {
  for (Operation *op = first; op != last; op = op->getNextNode())
    if (!isMemoryEffectFree(op))
      return true;
  return false;
}

bool mlir::mp::canRunAtOnce(const llvm::SetVector<Operation *> &ops) {
  Operation *first = firstOf(ops);
  if (crossesEffect(first, lastOf(ops)))
    return false;
  // From the operands outside, upwards: what comes before the first operation
  // reads nothing of the region.
  SmallVector<Operation *> pending;
  llvm::SmallPtrSet<Operation *, 32> seen;
  auto visit = [&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && !ops.contains(producer) &&
          first->isBeforeInBlock(producer) && seen.insert(producer).second)
        pending.push_back(producer);
    }
  };
  for (Operation *op : ops)
    visit(op);
  while (!pending.empty()) {
    if (seen.size() > kMaxVisited)
      return false;
    Operation *op = pending.pop_back_val();
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *producer = operand.getDefiningOp();
          return producer && ops.contains(producer);
        }))
      return false;
    visit(op);
  }
  return true;
}
