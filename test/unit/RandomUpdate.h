//===- RandomUpdate.h - optimizers that nobody would write -----*- C++ -*-===//

#ifndef TEST_UNIT_RANDOMUPDATE_H
#define TEST_UNIT_RANDOMUPDATE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp {

/// A valid module with one function @f, the same for the same seed: the update
/// of one or two parameters, each with two states and a gradient, from
/// elementwise operators, operators over lists, conversions, sums and numbers
/// of no dimension, such as the inverse loss scale. The reference interpreter
/// can run it. Each operation is a node of its own.
OwningOpRef<ModuleOp> makeRandomUpdate(MLIRContext *context, uint64_t seed);

} // namespace mlir::mp

#endif // TEST_UNIT_RANDOMUPDATE_H
