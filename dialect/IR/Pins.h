//===- Pins.h - what keeps a value in its type -----------------*- C++ -*-===//
//
// A pin says that a result or an operand must have a type, by which rule and
// for which reason (#mp.pin). Pins are evidence: an operation or an argument
// holds any number of them in `mp.pin`, and none takes another back.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_PINS_H
#define MP_DIALECT_IR_PINS_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// The pins of an operation; none of anything else in its `mp.pin`.
SmallVector<PinAttr, 1> pinsOf(Operation *op);

/// The pins of a function's argument; none of other block arguments.
SmallVector<PinAttr, 1> pinsOf(BlockArgument arg);

/// The pins of what defines `value` that are about `value`.
SmallVector<PinAttr, 1> pinsOf(Value value);

/// Adds `pin`. False if it was there already.
bool addPin(Operation *op, PinAttr pin);
bool addPin(BlockArgument arg, PinAttr pin);

/// True if `pin` is about result or operand `index`.
bool pinsResult(PinAttr pin, unsigned index);
bool pinsOperand(PinAttr pin, unsigned index);

/// True if `value` must be computed and stored in f32, or in its traced type:
/// no rounding is put on it.
bool isPinnedWide(Value value);

/// True if `value` must have its traced type.
bool isKept(Value value);

/// True if no rounding may be added between the operand and its reader.
bool isPinnedWide(OpOperand &operand);

/// True if some operand of `op` is pinned to f32 or its traced type.
bool hasPinnedOperands(Operation *op);

/// Makes pins of operand i pins of operand `newIndex[i]`.
void renumberPinnedOperands(Operation *op, ArrayRef<int64_t> newIndex);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_PINS_H
