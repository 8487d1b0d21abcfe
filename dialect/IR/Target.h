//===- Target.h - what a graph will run on ---------------------*- C++ -*-===//

#ifndef MP_DIALECT_IR_TARGET_H
#define MP_DIALECT_IR_TARGET_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::mp {

/// The dtype support of one target, as rewrites need it.
struct Target {
  llvm::StringRef name;
  /// The framework has mm, bmm, addmm and baddbmm of half operands with an f32
  /// result (the overloads `dtype`): on CUDA only, measured on PyTorch 2.15.
  bool hasHalfMatmulWithF32Result;
  /// The framework's fuser reduces rows and columns in one kernel.
  bool mixesReductions;
  /// The built-in cost model to assume; empty for that of the host.
  llvm::StringRef costModel;
};

/// The row of `name`; null when there is none.
const Target *lookupTarget(llvm::StringRef name);

/// The target that the function's `mp.target` names, else "cpu".
const Target &targetOf(func::FuncOp func);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_TARGET_H
