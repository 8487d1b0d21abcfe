//===- Elementwise.h - operations that a sweep over memory can do -*- C++
//-*-===//

#ifndef MP_DIALECT_IR_ELEMENTWISE_H
#define MP_DIALECT_IR_ELEMENTWISE_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// True if each element of the one result of `op` depends on the same element
/// of the operands and on operands without dimensions only. Sizes are static,
/// and the result has a dimension.
bool isElementwise(Operation *op);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_ELEMENTWISE_H
