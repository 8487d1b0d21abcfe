//===- Passes.h - passes of mpopt ------------------------------*- C++ -*-===//

#ifndef MP_PASSES_PASSES_H
#define MP_PASSES_PASSES_H

#include "dialect/IR/MPDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/Placement/Freedom.h"

namespace mlir::mp {

/// The numerics contract of a graph.
enum class Numerics {
  Strict,  ///< bit-identical to the traced graph
  Precise, ///< may drop roundings that autocast inserted
  Relaxed, ///< may add roundings within an error budget
};

/// The half format that a graph is, or will be, computed in.
enum class Half {
  Auto, ///< f16 if the graph holds any, else bf16
  BF16,
  F16,
  None, ///< no half format
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace mlir::mp

#endif // MP_PASSES_PASSES_H
