//===- Functions.h - functions of f32 by polynomials ------------*- C++ -*-===//
//
// Replaces functions of the math dialect by arithmetic, on scalars or vectors
// of any shape, the same for every backend: no library, the same bits on CPUs
// and GPUs. codegen/docs/Functions.md states the error of each.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_MATH_FUNCTIONS_H
#define MP_CODEGEN_MATH_FUNCTIONS_H

#include "mlir/IR/Operation.h"

namespace mlir::mp {

/// Expands the functions of Functions.def below `root`. Those of f16 and bf16
/// are computed in f32 and rounded once; those of f64 stay.
void expandFunctions(Operation *root);

} // namespace mlir::mp

#endif // MP_CODEGEN_MATH_FUNCTIONS_H
