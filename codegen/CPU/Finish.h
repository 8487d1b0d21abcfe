//===- Finish.h - the arithmetic behind sums, in vectors --------*- C++ -*-===//
//
// The part of a matmul kernel for the CPU that is compiled: what turns a block
// of sums into results (runtime/Gemm/Gemm.h, `Finish`). The body of the
// kernel's epilogue is cloned on vectors.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_FINISH_H
#define MP_CODEGEN_CPU_FINISH_H

#include "codegen/Kernel/Kernel.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp::cpu {

/// The name of the function.
inline constexpr llvm::StringLiteral kFinishName = "mp_finish";

/// A module with the function `mp_finish` of a kernel, in the dialects arith,
/// math, scf, vector and llvm. Fails with an error if the epilogue has an op
/// that no vector has.
FailureOr<OwningOpRef<ModuleOp>> emitFinish(const MatmulKernel &kernel);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_FINISH_H
