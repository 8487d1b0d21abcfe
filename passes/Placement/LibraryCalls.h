//===- LibraryCalls.h - calls whose type is open ---------------*- C++ -*-===//
//
// Matrix products, convolutions and attention of f32 operands, which a library
// can also compute from half operands: which operands and results then are
// halves, and what either costs.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_LIBRARYCALLS_H
#define MP_PASSES_PLACEMENT_LIBRARYCALLS_H

#include "dialect/IR/MPOps.h"
#include "passes/CostModel/CostModel.h"

namespace mlir::mp {

/// A call as matrix products: `count` times `batch` products of m x k by k x n.
struct CallShape {
  int64_t count = 1, batch = 1, m = 1, n = 1, k = 1;
};

/// The products of a call, or std::nullopt if it is no call of these kinds or
/// its operands are not all of f32.
std::optional<CallShape> openCallShape(Operation *op);

/// True for operands and results that become halves together with the call;
/// others, such as the statistics of attention, stay as they are.
bool changesWithCall(Operation *call, Type type);

/// What a call costs in f32 and in a half type.
struct CallCost {
  double wide, half;   ///< seconds
  bool pays;           ///< the half type is faster by more than the model errs
  std::string verdict; ///< for reports
};
CallCost costOf(const CallShape &shape, const CostModel &model, Type half);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_LIBRARYCALLS_H
