//===- Arguments.h - what a traced call passes ------------------*- C++ -*-===//
//
// `args` of an operation holds what is no operand by name; a text "%k" there,
// also within lists and dictionaries, stands for operand k.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_ARGUMENTS_H
#define MP_DIALECT_IR_ARGUMENTS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::mp {

/// The k of a text "%k", whether or not there is such an operand; nothing for
/// other attributes and for null.
std::optional<unsigned> operandNumber(Attribute attr);

/// The operand of `op` that "%k" among its arguments stands for; null for other
/// attributes and where there is none.
Value operandOf(Operation *op, Attribute attr);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_ARGUMENTS_H
