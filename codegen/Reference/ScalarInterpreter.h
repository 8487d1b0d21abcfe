//===- ScalarInterpreter.h - scalar arith and math --------------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_SCALARINTERPRETER_H
#define CODEGEN_REFERENCE_SCALARINTERPRETER_H

#include "mlir/IR/Operation.h"

namespace mlir::mp::reference {

/// A number: `real` of a float type, `integer` of any other.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

/// The result of an op of codegen/Kernel/ScalarOps.def on `operands`, rounded
/// once to its type. False for any other op.
bool evaluateScalar(Operation *op, ArrayRef<Scalar> operands, Scalar &result);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_SCALARINTERPRETER_H
