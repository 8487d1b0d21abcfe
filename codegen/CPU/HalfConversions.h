//===- HalfConversions.h - f16 without instructions for it ------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_HALFCONVERSIONS_H
#define MP_CODEGEN_CPU_HALFCONVERSIONS_H

#include "mlir/Pass/Pass.h"

namespace mlir::mp::cpu {

/// Rewrites conversions between f16 and f32 to integer arithmetic and exact
/// multiplications, for machines that would call a function for each element.
/// To nearest, ties to even; a NaN loses its payload.
std::unique_ptr<Pass> createExpandHalfConversions();

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_HALFCONVERSIONS_H
