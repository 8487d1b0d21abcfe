//===- ShareCasts.cpp - one conversion for all readers --------------------===//
//
// Only within a phase: a conversion shared by forward and backward would have
// to be kept from one to the other, also where its source is alive anyway.
//
//===----------------------------------------------------------------------===//

#include "passes/Casts/CastIndex.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Promotion.h"

using namespace mlir;
using namespace mlir::mp;

bool mlir::mp::shareCasts(func::FuncOp func, RewriteLog &log) {
  llvm::DenseMap<CastKey, CastOp, CastKeyInfo> first;
  bool changed = false;
  for (CastOp cast : llvm::make_early_inc_range(func.getOps<CastOp>())) {
    // An operator does its own promotion: there is no conversion to share.
    if (isImplicit(cast))
      continue;
    CastKey key = castKeyOf(cast.getInput(), cast.getTo(), cast);
    auto [it, isNew] = first.try_emplace(key, cast);
    if (isNew)
      continue;
    CastOp kept = it->second;
    if (wouldAlias(cast.getOutput(), kept.getOutput()))
      continue; // two outputs would be one tensor
    if (!log.apply(Rule::ShareEqualCasts, cast,
                   describe(cast) + " of the same value exists"))
      return changed;
    // A user's rounding stays a user's, also for autocast's readers.
    if (cast.getOrigin() == CastOrigin::user)
      kept.setOriginAttr(cast.getOriginAttr());
    cast.replaceAllUsesWith(kept.getOutput());
    cast.erase();
    changed = true;
  }
  return changed;
}
