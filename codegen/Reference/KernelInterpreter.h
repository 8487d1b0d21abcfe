//===- KernelInterpreter.h - what a kernel means ----------------*- C++ -*-===//
//
// Evaluates a kernel in the form of codegen/docs/BackendContract.md. Each
// operation rounds once to its type; sums add up in the order of the loops, in
// f32. What backends compute is compared with this, bit for bit where the order
// of a sum cannot matter.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_REFERENCE_KERNELINTERPRETER_H
#define CODEGEN_REFERENCE_KERNELINTERPRETER_H

#include "codegen/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir::mp::reference {

/// The results of `kernel` on `inputs`, one for each argument.
llvm::Expected<std::vector<Tensor>> evaluateKernel(func::FuncOp kernel,
                                                   ArrayRef<Tensor> inputs);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_KERNELINTERPRETER_H
