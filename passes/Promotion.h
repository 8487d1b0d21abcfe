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
/// of origin promotion.
void makePromotionExplicit(AtenOp op);

/// Removes casts of origin promotion from the operands of `op` where the
/// operator then does the same by itself. The casts may be left without use.
void makePromotionImplicit(AtenOp op);

} // namespace mlir::mp

#endif // MP_PASSES_PROMOTION_H
