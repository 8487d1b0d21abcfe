//===- Pointwise.h - arithmetic of elementwise operators --------*- C++ -*-===//

#ifndef MP_CODEGEN_LOWER_POINTWISE_H
#define MP_CODEGEN_LOWER_POINTWISE_H

#include "codegen/Lower/Scalars.h"
#include "passes/Outline/RegionOps.h"

namespace mlir::mp::lower {

/// One operator on scalars. An argument is an operand, or a number among the
/// attributes, by its name and its place in the schema.
class PointwiseCall {
public:
  PointwiseCall(Operation *op, Scalars &scalars, ValueRange operands)
      : scalars(scalars), op(op), operands(operands) {}

  bool has(StringRef name, unsigned position) const;
  /// In its own type; a number has the type that the operator computes in.
  Value argument(StringRef name, unsigned position);
  /// Converted to the type that the operator computes in: f32 if a float takes
  /// part, else the widest integer.
  Value value(StringRef name, unsigned position);
  /// As f32.
  Value real(StringRef name, unsigned position) {
    return scalars.toFloat(argument(name, position));
  }
  Value first() { return real("self", 0); }
  Type computeType() const;
  bool computesFloats() const { return isa<FloatType>(computeType()); }
  Type resultType() const { return elementTypeOf(op->getResult(0)); }
  StringRef text(StringRef name) const;
  double number(StringRef name, double absent) const {
    return numberOf(op, name).value_or(absent);
  }
  Operation *getOperation() const { return op; }

  Scalars &scalars;

private:
  std::optional<unsigned> operandOf(StringRef name, unsigned position) const;

  Operation *op;
  ValueRange operands;
};

using PointwiseEmitter = Value (*)(PointwiseCall &);

/// The arithmetic of an operator of the role Pointwise; null without a row in
/// PointwiseOps.def.
PointwiseEmitter pointwiseEmitterOf(Operation *op);

/// The operator on scalars of its operands' types, in the type of its result.
Value emitPointwise(Operation *op, Scalars &scalars, ValueRange operands);

/// The operand of that name, if it is there.
Value operandNamed(Operation *op, StringRef name, unsigned position);

// Activations.cpp
Value emitGelu(PointwiseCall &call);
Value emitGeluBackward(PointwiseCall &call);
Value emitRelu(PointwiseCall &call);
Value emitSigmoid(PointwiseCall &call);
Value emitSigmoidBackward(PointwiseCall &call);
Value emitSilu(PointwiseCall &call);
Value emitSiluBackward(PointwiseCall &call);
Value emitTanhBackward(PointwiseCall &call);
Value emitThresholdBackward(PointwiseCall &call);

} // namespace mlir::mp::lower

#endif // MP_CODEGEN_LOWER_POINTWISE_H
