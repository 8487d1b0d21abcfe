//===- RandomGraph.h - graphs that nobody would write ----------*- C++ -*-===//

#ifndef TEST_UNIT_RANDOMGRAPH_H
#define TEST_UNIT_RANDOMGRAPH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp {

/// A valid module with one function @f, the same for the same seed: conversions
/// of random origin among f16, bf16, f32 and f64, data movement, monotone
/// operators, arithmetic, reductions, comparisons, matrix products, values with
/// many readers, a forward part and a backward part that reads it. The
/// reference interpreter can run it. Each operation is a node of its own.
/// `hasProducts` gives more matrix products, of f32 operands and of halves that
/// are widened afterwards.
OwningOpRef<ModuleOp> makeRandomGraph(MLIRContext *context, uint64_t seed,
                                      bool isTraced = false,
                                      bool hasProducts = false);

} // namespace mlir::mp

#endif // TEST_UNIT_RANDOMGRAPH_H
