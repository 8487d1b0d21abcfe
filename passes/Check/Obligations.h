//===- Obligations.h - conditions of the contract precise ------*- C++ -*-===//
//
// A record may claim that a rounding was dropped. This is legal if
//   - autocast, an implicit promotion or a decomposition asked for it,
//   - each live reader widens it again, through data movement or at once, to a
//     type that holds the unrounded value: all of them see the same value,
//   - equal roundings of the same value, in forward, backward and recomputed
//     regions, are dropped as well,
//   - no comparison, index, integer conversion or rounding operator reads it
//     through conversions and data movement.
//
// It may also claim that a product of halves hands on its f32 accumulator: then
// what the product rounds is a conversion that can be dropped like one of
// autocast.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_OBLIGATIONS_H
#define MP_PASSES_CHECK_OBLIGATIONS_H

#include "passes/Check/NormalForm.h"
#include "passes/Check/Records.h"

namespace mlir::mp::check {

/// What became of a rounding that a record merged into an equal one, before a
/// record drops one of those equal roundings. The record does not say which of
/// them it was merged into.
enum class Merged {
  WithDropped, ///< into the dropped one: it is dropped as well
  WithKept,    ///< into another, which stays
};

/// Verifies what `records` claim, but for roundings that they add, which
/// `allowances` has. `form` is the normal form of `before` with no allowance.
/// Emits an error for each claim that does not hold; `allowances` gets all
/// claims, so that one wrong claim is not reported a second time for every
/// output that it reaches.
LogicalResult verifyRecord(func::FuncOp before, func::FuncOp after,
                           ArrayRef<Record> records, const NormalForm &form,
                           const TermTable &table, Merged merged,
                           Allowances &allowances);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_OBLIGATIONS_H
