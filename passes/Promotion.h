//===- Promotion.h - implicit type promotion, made explicit ----*- C++ -*-===//
//
// A pointwise operator with operands of two float types widens the narrower one
// by itself. Passes must see that widening: to the reader it is a conversion
// like any other. Back in the framework it is implicit again.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PROMOTION_H
#define MP_PASSES_PROMOTION_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// Widens each operand of `op` that the operator would widen itself, by a cast
/// of origin promotion that is marked as implicit.
void makePromotionExplicit(AtenOp op);

/// Removes implicit casts from the operands of `op` where the operator then
/// does the same by itself. The casts may be left without use.
void makePromotionImplicit(AtenOp op);

/// True if `cast` is what makePromotionExplicit added: the operator converts by
/// itself, so there is nothing to share or to count.
bool isImplicit(CastOp cast);

} // namespace mlir::mp

#endif // MP_PASSES_PROMOTION_H
