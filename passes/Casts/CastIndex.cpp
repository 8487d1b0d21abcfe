//===- CastIndex.cpp - the conversions of each value ----------------------===//

#include "passes/Casts/CastIndex.h"
#include "passes/Promotion.h"

using namespace mlir;
using namespace mlir::mp;

CastKey mlir::mp::castKeyOf(Value input, Type to, Operation *like) {
  return {input, to, isBackward(like),
          like->getAttr(MPDialect::kRecomputeAttrName)};
}

CastIndex::CastIndex(func::FuncOp func) {
  for (CastOp cast : func.getOps<CastOp>())
    add(cast);
}

CastOp CastIndex::find(Value input, Type to, Operation *like) const {
  auto it = casts.find(castKeyOf(input, to, like));
  if (it == casts.end())
    return {};
  CastOp first;
  for (Operation *op : it->second) {
    auto cast = llvm::cast<CastOp>(op);
    if (cast != like && !isImplicit(cast) &&
        (!first || cast->isBeforeInBlock(first)))
      first = cast;
  }
  return first;
}

void CastIndex::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  notifyOperationModified(op);
}

void CastIndex::notifyOperationModified(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return;
  remove(cast);
  add(cast);
}

void CastIndex::notifyOperationErased(Operation *op) { remove(op); }

void CastIndex::add(CastOp cast) {
  CastKey key = castKeyOf(cast.getInput(), cast.getTo(), cast);
  casts[key].push_back(cast);
  keys.try_emplace(cast, key);
}

void CastIndex::remove(Operation *op) {
  auto it = keys.find(op);
  if (it == keys.end())
    return;
  auto &equal = casts[it->second];
  equal.erase(llvm::find(equal, op));
  keys.erase(it);
}
