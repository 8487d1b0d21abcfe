//===- StoredValues.cpp - who reads what is stored ------------------------===//

#include "passes/Placement/StoredValues.h"

using namespace mlir;
using namespace mlir::mp;

/// True for a conversion between f32 and a half type, or to the same type.
static bool isFloatCast(CastOp cast) {
  Type from = cast.getFrom(), to = cast.getTo();
  return from == to || (from.isF32() && isHalf(to)) ||
         (isHalf(from) && to.isF32());
}

bool mlir::mp::isCopy(Operation *op) {
  if (isa<MaterializeOp, RoundOp>(op))
    return true;
  if (auto cast = dyn_cast<CastOp>(op))
    return isFloatCast(cast);
  return kernelRoleOf(op) == KernelRole::View && op->getNumOperands() > 0;
}

static bool rounds(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return !cast.isExact();
  return isa<RoundOp>(op);
}

Value mlir::mp::rootOf(Value value, bool &isRounded) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isCopy(op))
      break;
    isRounded |= rounds(op);
    value = op->getOperand(0);
  }
  return value;
}

std::optional<RootRead> mlir::mp::readOf(OpOperand &use,
                                         const FusionEstimate &fusion) {
  Value value = use.get();
  if (!isa_and_nonnull<FloatType>(elementTypeOf(value)))
    return std::nullopt;
  RootRead read;
  while (true) {
    Operation *op = value.getDefiningOp();
    bool isView = op && kernelRoleOf(op) == KernelRole::View;
    if (!op || (!isView && fusion.isStored(value)))
      break;
    // Computed in the reader's kernel.
    if (!isCopy(op))
      return std::nullopt;
    read.isRounded |= rounds(op);
    value = op->getOperand(0);
  }
  read.buffer = value;
  read.root = rootOf(value, read.isRounded);
  return read;
}

Type mlir::mp::halfTypeOf(func::FuncOp func) {
  llvm::SmallDenseMap<Type, int> votes;
  for (Operation &op : func.getBody().front())
    for (Value result : op.getResults())
      if (Type type = elementTypeOf(result); type && isHalf(type))
        ++votes[type];
  Type best;
  for (auto [type, count] : votes)
    if (!best || count > votes.lookup(best) ||
        (count == votes.lookup(best) && type.isBF16()))
      best = type;
  return best;
}
