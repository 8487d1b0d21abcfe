//===- Regions.h - bodies of operations, put in their place ----*- C++ -*-===//

#ifndef MP_DIALECT_IR_REGIONS_H
#define MP_DIALECT_IR_REGIONS_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// Puts the body of `op` (mp.region, mp.scaled_update) in its place.
void inlineBody(Operation *op);

/// Checks that the only block of `op` takes its operands and yields its
/// results.
LogicalResult verifyBody(Operation *op);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_REGIONS_H
