//===- LossScaleTypes.h - the unit of each value in a step ------*- C++ -*-===//
//
// Infers how often each value of a traced step is multiplied by the loss scale
// (ScaleRules.h), and collects the places where two units meet that differ: a
// gradient that reaches the update still scaled, or unscaled twice, or by
// another scale, or is clipped before it is unscaled.
//
// A loss scale is known by the integer attribute `mp.loss_scale` of an argument
// or an operation: n if its first result is the n-th power of a scale of its
// own. `markLossScales` puts it where the operators of PyTorch's scaler tell.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_UPDATE_LOSSSCALETYPES_H
#define MP_PASSES_UPDATE_LOSSSCALETYPES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Update/ScaleUnits.h"

namespace mlir::mp {

/// Two units that had to be equal.
struct ScaleConflict {
  Operation *op; ///< where they meet
  Value value;   ///< the operand that is out of place
  Unit unit;     ///< its unit, known
  Value other;   ///< what it meets; null for a literal or plain numbers
  Unit otherUnit;
  bool isLiteral = false; ///< `other` is a literal among the arguments
};

class LossScaleTypes {
public:
  /// `func` has one block.
  explicit LossScaleTypes(func::FuncOp func);

  /// False if no loss scale is known: then all units are unknown or none.
  bool hasScale() const { return !scaleValues.empty(); }
  ArrayRef<ScaleConflict> getConflicts() const { return conflicts; }

  /// The unit of a value, as far as it is known. None for values that are no
  /// float tensors.
  Unit unitOf(Value value) const;
  bool isKnown(const Unit &unit) const { return units.isKnown(unit); }

  /// The value that a loss scale comes from.
  Value originOf(unsigned scale) const { return scaleValues.lookup(scale); }

  /// True if `value` is a power of a loss scale times a literal: the scale
  /// itself, its reciprocal, either in another type.
  bool isPureScale(Value value) const { return pure.contains(value); }

  /// The operations on the way to `value` that multiply or divide by a loss
  /// scale, the last one first.
  SmallVector<Operation *> scalingsOf(Value value) const;

private:
  void visitArgument(BlockArgument argument, func::FuncOp func);
  void visit(Operation *op);
  void visitOperator(Operation *op);
  void visitRow(Operation *op, ArrayRef<Value> values);
  void define(Value value, int64_t power);
  void defineAs(unsigned symbol, Value value, int64_t power);
  void visitScales(func::FuncOp func);
  void setResults(Operation *op, const Unit &unit);
  Unit product(ArrayRef<Value> values) const;
  void require(Operation *op, Value value, Value other, const Unit &unit,
               bool isLiteral = false);
  void requireNone(Operation *op, ArrayRef<Value> values);
  void requireLiterals(Operation *op, Value value);
  void visitUpdate(Operation *op);
  bool computesPureScale(Operation *op) const;

  ScaleUnits units;
  llvm::DenseMap<Value, Unit> unitOfValue;
  llvm::DenseMap<unsigned, Value> scaleValues;
  llvm::DenseSet<Value> pure;
  SmallVector<ScaleConflict> conflicts;
};

/// Marks the loss scales that `_amp_update_scale` and the operator that checks
/// and unscales read, where they come into `func`.
void markLossScales(func::FuncOp func);

/// "%arg3" or the name that the framework gave.
std::string describeScale(Value scale);

} // namespace mlir::mp

#endif // MP_PASSES_UPDATE_LOSSSCALETYPES_H
