//===- CastReasons.h - what a conversion is for ----------------*- C++ -*-===//

#ifndef MP_PASSES_CASTREASONS_H
#define MP_PASSES_CASTREASONS_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

/// What a conversion converts. Reports list weights and gradients apart: their
/// traffic is fixed per step, whatever the batch.
enum class CastRole { Weight, Gradient, Activation, Index };

llvm::StringRef stringifyCastRole(CastRole role);

CastRole roleOf(CastOp cast);

/// True if `value` is, through views, an argument of role "parameter".
bool isParameter(Value value);

/// One sentence: who asked for the conversion, what reads it, and the fact or
/// contract that keeps it.
std::string reasonToKeep(CastOp cast);

} // namespace mlir::mp

#endif // MP_PASSES_CASTREASONS_H
