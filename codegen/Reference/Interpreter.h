//===- Interpreter.h - what a graph means ----------------------*- C++ -*-===//
//
// Evaluates a function of the mp dialect, one operation after the other, in
// exactly the formats that its types name: after each operation every element
// is rounded once to its element type. Written to be read, not to be fast; it
// is the reference that rewrites are tested against.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_REFERENCE_INTERPRETER_H
#define CODEGEN_REFERENCE_INTERPRETER_H

#include "codegen/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir::mp::reference {

/// The results of `func` for `inputs`, one for each argument. Fails with a
/// message that names the operation when one has no evaluator, gets a wrong
/// argument, or computes a shape that its type denies.
llvm::Expected<std::vector<Tensor>> evaluate(func::FuncOp func,
                                             ArrayRef<Tensor> inputs);

/// True if the interpreter has an evaluator for `op`.
bool isSupported(Operation *op);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_INTERPRETER_H
