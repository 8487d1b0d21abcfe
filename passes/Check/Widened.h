//===- Widened.h - what a policy has computed in f32 -----------*- C++ -*-===//
//
// A record may claim that an operation is computed in f32 because the policy
// wants it, also from operands as they were before autocast rounded them. This
// is legal if the policy, applied anew to the graph before, pins the
// operation, and each of those operands, to f32.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_WIDENED_H
#define MP_PASSES_CHECK_WIDENED_H

#include "passes/Check/NormalForm.h"
#include "passes/Check/Records.h"

namespace mlir::mp::check {

/// Adds what `records` claim to `allowances`, and emits an error for each claim
/// that does not hold.
LogicalResult verifyWidened(func::FuncOp before, func::FuncOp after,
                            ArrayRef<Record> records, Allowances &allowances);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_WIDENED_H
