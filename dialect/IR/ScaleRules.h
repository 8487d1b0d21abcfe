//===- ScaleRules.h - how operators carry the loss scale --------*- C++ -*-===//
//
// The loss scale is a unit of measure: a gradient of a loss that was multiplied
// with S has the unit S, its square the unit S^2, the loss itself none. A rule
// says which units an operator's float operands may have and which its results
// then have. Literals other than zero and infinity have none.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_SCALERULES_H
#define MP_DIALECT_IR_SCALERULES_H

#include "mlir/IR/Operation.h"

namespace mlir::mp {

enum class ScaleRule {
  Unknown,         ///< nothing is known of operands or results
  Same,            ///< operands and results all have one unit
  Blend,           ///< the same for the first two operands; others have none
  Carried,         ///< results have the unit of operand 0; others have none
  Product,         ///< the product of the operands' units
  ProductPlusBias, ///< the product of the first two; a third one is added
  SumOfProduct,    ///< operand 0 plus the product of the other two
  SumOfQuotient,   ///< operand 0 plus operand 1 divided by operand 2
  Quotient,        ///< operand 0 divided by operand 1
  Inverse,         ///< 1 / x
  Root,            ///< square root
  InverseRoot,     ///< 1 / square root
  Square,          ///< x * x
  Power,           ///< x to a literal power; anything else has no unit
  Free,            ///< operands have any units, results have none
  None,            ///< neither operands nor results have a unit
  Zero,            ///< the result is zero, which has every unit
  Update,          ///< `grads` have the unit of `grad_scale`; all else has none
  NewScale,        ///< the first result is a loss scale of its own
};

/// The rule of `op`: its row, or that of its kind. Operations with effects and
/// operators without a row and a kind are `Unknown`.
ScaleRule scaleRuleOf(Operation *op);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_SCALERULES_H
