//===- Passes.h - passes of the code generator ------------------*- C++ -*-===//

#ifndef MP_CODEGEN_LOWER_PASSES_H
#define MP_CODEGEN_LOWER_PASSES_H

#include "dialect/IR/MPDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::mp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/Lower/Passes.h.inc"

} // namespace mlir::mp

#endif // MP_CODEGEN_LOWER_PASSES_H
