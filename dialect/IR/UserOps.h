//===- UserOps.h - kinds of operators that users bring ---------*- C++ -*-===//
//
// A function's `mp.op_rows` says what the table does not know, such as
// {mylib.scale = "pointwise"}. It belongs to the function, so that compilations
// do not see each other's, and passes that run on functions at the same time do
// not either. Names are with or without overload; a row of the table wins.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_USEROPS_H
#define MP_DIALECT_IR_USEROPS_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// The kind that the function around `op` gives its operator, or `Unknown`.
OpKind userOpKind(AtenOp op);

/// op_rows_c1, op_rows_c2.
LogicalResult verifyOpRows(Operation *op, Attribute attr);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_USEROPS_H
