//===- Mutate.cpp - rewrites that a pass must not do ----------------------===//

#include "test/unit/Mutate.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/Builders.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;

static bool isRounding(CastOp cast) {
  return isa<FloatType>(cast.getFrom()) && isa<FloatType>(cast.getTo()) &&
         !cast.isExact();
}

static bool dropRounding(CastOp narrowing) {
  for (Operation *user : llvm::make_early_inc_range(narrowing->getUsers())) {
    auto widening = dyn_cast<CastOp>(user);
    if (!widening || widening.getType() != narrowing.getInput().getType())
      continue;
    widening.replaceAllUsesWith(narrowing.getInput());
    return true;
  }
  return false;
}

/// The other half and back to the type that readers expect.
static bool exchangeHalves(CastOp narrowing) {
  if (!isHalf(narrowing.getTo()))
    return false;
  OpBuilder builder(narrowing);
  Type other = narrowing.getTo().isF16() ? Type(builder.getBF16Type())
                                         : Type(builder.getF16Type());
  auto detour =
      CastOp::create(builder, narrowing.getLoc(), narrowing.getInput(), other,
                     narrowing.getOrigin());
  narrowing.getInputMutable().assign(detour.getOutput());
  return true;
}

static bool mergeRoundings(CastOp outer) {
  auto inner = outer.getInput().getDefiningOp<CastOp>();
  if (!inner || !isRounding(inner))
    return false;
  outer.getInputMutable().assign(inner.getInput());
  return true;
}

static bool moveOverOperator(CastOp narrowing) {
  auto moved = narrowing.getInput().getDefiningOp<AtenOp>();
  if (!moved || moved->getNumResults() != 1 || moved.commutesWithRounding())
    return false;
  Type from = narrowing.getFrom();
  for (Value operand : moved->getOperands())
    if (getElementTypeOrSelf(operand.getType()) != from)
      return false;
  OpBuilder builder(moved);
  Operation *narrow = builder.clone(*moved);
  builder.setInsertionPoint(narrow);
  for (OpOperand &operand : narrow->getOpOperands())
    operand.set(CastOp::create(builder, narrowing.getLoc(), operand.get(),
                               narrowing.getTo(), narrowing.getOrigin()));
  narrow->getResult(0).setType(narrowing.getType());
  narrowing.replaceAllUsesWith(narrow->getResult(0));
  return true;
}

static bool roundOperand(Operation *op, std::mt19937_64 &random) {
  if (op->getNumOperands() == 0)
    return false;
  OpOperand &operand = op->getOpOperand(random() % op->getNumOperands());
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  if (!type ||
      !(type.getElementType().isF32() || type.getElementType().isF64()))
    return false;
  OpBuilder builder(op);
  Type half =
      random() % 2 ? Type(builder.getBF16Type()) : Type(builder.getF16Type());
  auto narrow = CastOp::create(builder, op->getLoc(), operand.get(), half,
                               CastOrigin::autocast);
  operand.set(CastOp::create(builder, op->getLoc(), narrow.getOutput(),
                             type.getElementType(), CastOrigin::autocast));
  return true;
}

static bool replaceOperand(Operation *op, std::mt19937_64 &random) {
  if (op->getNumOperands() == 0)
    return false;
  OpOperand &operand = op->getOpOperand(random() % op->getNumOperands());
  SmallVector<Value> others;
  auto offer = [&](Value value) {
    if (value != operand.get() && value.getType() == operand.get().getType())
      others.push_back(value);
  };
  for (Value argument : op->getBlock()->getArguments())
    offer(argument);
  for (Operation &before : *op->getBlock()) {
    if (&before == op)
      break;
    for (Value result : before.getResults())
      offer(result);
  }
  if (others.empty())
    return false;
  operand.set(others[random() % others.size()]);
  return true;
}

static bool mutateAt(Operation *op, Mutation mutation,
                     std::mt19937_64 &random) {
  auto cast = dyn_cast<CastOp>(op);
  bool rounds = cast && isRounding(cast);
  switch (mutation) {
  case Mutation::DropRounding:
    return rounds && dropRounding(cast);
  case Mutation::ExchangeHalves:
    return rounds && exchangeHalves(cast);
  case Mutation::MergeRoundings:
    return rounds && mergeRoundings(cast);
  case Mutation::MoveOverOperator:
    return rounds && moveOverOperator(cast);
  case Mutation::RoundOperand:
    return roundOperand(op, random);
  case Mutation::ReplaceOperand:
    return replaceOperand(op, random);
  }
  llvm_unreachable("all mutations are handled");
}

bool mlir::mp::mutate(func::FuncOp func, Mutation mutation, uint64_t seed) {
  std::mt19937_64 random(seed);
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front())
    ops.push_back(&op);
  // Not std::shuffle: it gives another order with another library.
  for (size_t i = ops.size(); i > 1; --i)
    std::swap(ops[i - 1], ops[random() % i]);
  return llvm::any_of(
      ops, [&](Operation *op) { return mutateAt(op, mutation, random); });
}
