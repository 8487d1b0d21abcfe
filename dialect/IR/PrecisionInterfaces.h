//===- PrecisionInterfaces.h - what passes ask of an operation -*- C++ -*-===//

#ifndef MP_DIALECT_IR_PRECISIONINTERFACES_H
#define MP_DIALECT_IR_PRECISIONINTERFACES_H

#include "dialect/IR/OpTable.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::mp {

/// The tensor operands whose element type equals that of the first result, in
/// order. Empty if an operand of another type may carry values as well.
llvm::SmallVector<unsigned> defaultValueOperands(Operation *op);

/// The kind of `op`; Unknown if it has no PrecisionOpInterface.
OpKind opKindOf(Operation *op);

} // namespace mlir::mp

#include "dialect/IR/PrecisionInterfaces.h.inc"

#endif // MP_DIALECT_IR_PRECISIONINTERFACES_H
