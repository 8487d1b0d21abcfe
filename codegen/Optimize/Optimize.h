//===- Optimize.h - LLVM's optimiser on one module --------------*- C++ -*-===//

#ifndef MP_CODEGEN_OPTIMIZE_OPTIMIZE_H
#define MP_CODEGEN_OPTIMIZE_OPTIMIZE_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"

namespace mlir::mp {

/// Runs the default pipeline of `level` on `module`, with what `machine` knows
/// of its target, if there is one.
void optimize(llvm::Module &module, llvm::OptimizationLevel level,
              llvm::TargetMachine *machine = nullptr,
              llvm::PipelineTuningOptions tuning = {});

} // namespace mlir::mp

#endif // MP_CODEGEN_OPTIMIZE_OPTIMIZE_H
