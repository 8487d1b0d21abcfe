//===- ValueNumbers.h - values that are computed alike ---------*- C++ -*-===//
//
// A checkpointed region computes values again, and a graph may hold the same
// computation twice for other reasons. Whether to drop a rounding of such a
// value is one decision: forward and the repetition must see the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CASTS_VALUENUMBERS_H
#define MP_PASSES_CASTS_VALUENUMBERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::mp {

/// Numbers of the values of one function, equal where the same operators
/// compute them from the same inputs. What a rounding commutes with, an exact
/// conversion or data movement, has no number of its own: wherever a pattern
/// has moved a rounding to, it is found at the value that was computed. A
/// conversion is also exact if its type holds each value that its operand can
/// have, as bf16 does those of relu of a widened bf16.
/// Numbered when first asked; values that are computed later have none.
class ValueNumbers : public RewriterBase::ForwardingListener {
public:
  ValueNumbers(func::FuncOp func, OpBuilder::Listener *next)
      : ForwardingListener(next), func(func) {}

  /// True if another phase or checkpointed region rounds what has the number of
  /// `value` to `format`, or if that is not known.
  bool isRoundedElsewhere(Value value, Type format, Operation *by);

  void notifyOperationErased(Operation *op) override;

private:
  void numberAll();
  void number(Operation *op);
  bool numberConversion(Operation *op);
  bool numberLikeAnother(Operation *op);
  size_t hashOf(Operation *op) const;
  bool areAlike(Operation *a, Operation *b) const;
  Type typeOf(Operation *op) const;

  uint8_t formatsOf(Value value) const;
  uint8_t formatsOfResult(Operation *op) const;
  Value convertedExactly(Operation *op) const;
  Value handedOn(Operation *op) const;
  Value sourceOf(Value value, Type format) const;

  func::FuncOp func;
  bool isNumbered = false;
  llvm::DenseMap<Value, unsigned> numbers;
  /// One bit for each well-known format that holds all values of a value.
  llvm::DenseMap<Value, uint8_t> formats;
  unsigned next = 0;
  llvm::DenseMap<size_t, SmallVector<Operation *, 1>> byHash;
  /// The number of a value rounded to a format, by the number of the value.
  llvm::DenseMap<std::pair<unsigned, Type>, unsigned> rounded;
  llvm::DenseMap<std::pair<unsigned, Type>, SmallVector<Operation *, 1>>
      roundings;
  llvm::DenseSet<Operation *> erased;
};

} // namespace mlir::mp

#endif // MP_PASSES_CASTS_VALUENUMBERS_H
