//===- Dump.h - stages of a compilation as files ----------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_DUMP_H
#define MP_CODEGEN_CUDA_DUMP_H

#include "codegen/CUDA/Lowering.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::mp::cuda {

/// Writes `<folder>/<name>.<suffix>` if the options ask for dumps. A file that
/// cannot be written is a warning on standard error, no failure.
void dump(const LoweringOptions &options, llvm::StringRef suffix,
          llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_DUMP_H
