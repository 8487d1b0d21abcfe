//===- ListOperators.h - operators over lists of tensors --------*- C++ -*-===//
//
// What PyTorch defines as a loop over lists: `_foreach_*` (ForeachOps.def says
// which operator the loop runs) and the one that checks and unscales gradients.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_LISTOPERATORS_H
#define MP_DIALECT_IR_LISTOPERATORS_H

#include "dialect/IR/MPOps.h"
#include "mlir/IR/Builders.h"

namespace mlir::mp {

/// True if `op` is one of them.
bool isListOperator(AtenOp op);

/// True for `_amp_foreach_non_finite_check_and_unscale`.
bool isUnscaling(AtenOp op);

/// Why `expandListOperator` would not take a list operator; "" if it does.
llvm::StringRef whyNotExpandable(AtenOp op);

/// Builds the loop of an expandable list operator, at `loc`. Returns one value
/// for each result of `op`, which stays.
llvm::SmallVector<Value> expandListOperator(AtenOp op, OpBuilder &builder,
                                            Location loc);

/// Puts that loop in the place of an expandable list operator.
void replaceByLoop(AtenOp op, Location loc);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_LISTOPERATORS_H
