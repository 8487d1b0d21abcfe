//===- PinMatch.h - how detectors look at a graph ---------------*- C++ -*-===//

#ifndef MP_PASSES_PINS_PINMATCH_H
#define MP_PASSES_PINS_PINMATCH_H

#include "passes/Pins/PinRules.h"

#include <optional>

namespace mlir::mp {

/// True for f16, bf16 and f32 tensors, whose type a pin can be about.
bool isPinnable(Type type);

/// True if operand `i` chooses elements and is none of them.
bool isMaskOrIndex(Operation *op, unsigned i);

/// The literal `name` of an operator.
std::optional<double> numberArg(Operation *op, llvm::StringRef name);

/// The one number that all elements of `value` are, if the graph says so.
std::optional<double> constantOf(Value value);

/// The number that a binary operator adds or multiplies, and the operand that
/// it does so with; null if both are values.
std::optional<double> literalOf(Operation *op, Value &operand);

/// How many elements of the first operand each element of the first result is
/// made of; 0 with dynamic sizes.
int64_t elementsPerResult(Operation *op);

/// True if `op` hands on the elements of its first operand: a view, a copy, a
/// conversion between floats.
bool isTransparent(Operation *op);

/// What `value` is a view, copy or conversion of.
Value origin(Value value);

/// The operation behind views, copies and conversions; null for an argument.
inline Operation *producerOf(Value value) {
  return origin(value).getDefiningOp();
}

/// The operand of a square, written as a power, a product or aten.square; null
/// if `op` is no square.
Value squared(Operation *op);

/// Calls `visit` for each operation that reads `value`, also through views,
/// copies and conversions between floats. Long chains are cut off.
void forEachReader(Value value, llvm::function_ref<void(OpOperand &)> visit);

/// True if one of the operations that read `value` does `what`.
bool hasReader(Value value, llvm::function_ref<bool(OpOperand &)> what);

/// "8x512" of a tensor type, "a scalar" without dimensions.
std::string operandText(Type type);

/// At most four digits: "65504", "1e-05".
std::string numberText(double number);

} // namespace mlir::mp

#endif // MP_PASSES_PINS_PINMATCH_H
