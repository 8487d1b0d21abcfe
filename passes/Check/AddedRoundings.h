//===- AddedRoundings.h - conditions of the contract relaxed ---*- C++ -*-===//
//
// A record may claim that an operand is read rounded to a half type, or that a
// library call is computed from halves. The first is legal if
//   - the value is an f32 tensor that the graph computes and that nothing
//     rounds before the reader does,
//   - neither the value nor the operand is pinned to f32 or its traced type;
//     pins are those of the graph before, found anew, and those that the graph
//     after carries,
//   - the reader is computed in a generated kernel and cannot tell a rounded
//     value from another,
//   - all such claims together keep the error budget of the function.
// The second is legal where the user asked for that type and pinned nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_ADDEDROUNDINGS_H
#define MP_PASSES_CHECK_ADDEDROUNDINGS_H

#include "passes/Check/Check.h"
#include "passes/Check/NormalForm.h"
#include "passes/Check/Records.h"

namespace mlir::mp::check {

/// Adds what `records` claim to `allowances`. Emits an error for each claim
/// about something that `before` does not have.
LogicalResult claimAddedRoundings(func::FuncOp before, func::FuncOp after,
                                  ArrayRef<Record> records,
                                  Allowances &allowances);

/// Verifies the claims in `allowances`, which has all of them. Emits an error
/// for each that does not hold.
LogicalResult verifyAddedRoundings(func::FuncOp before, func::FuncOp after,
                                   const Allowances &allowances,
                                   AddedRoundings &added);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_ADDEDROUNDINGS_H
