//===- Rows.h - row kernels for the CPU -------------------------*- C++ -*-===//
//
// The part of a row kernel that is compiled (runtime/Rows/Rows.h): what is done
// with some rows, and how partial column sums become results. See
// codegen/docs/CpuRows.md.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_ROWS_ROWS_H
#define MP_CODEGEN_CPU_ROWS_ROWS_H

#include "codegen/Kernel/Kernel.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/Rows/Rows.h"

namespace mlir::mp::cpu {

/// The names of the functions.
inline constexpr llvm::StringLiteral kRowsName = "mp_rows";
inline constexpr llvm::StringLiteral kColumnsName = "mp_columns";

/// What runtime/Rows needs to know of a kernel, but for the functions.
FailureOr<::mp::runtime::rows::Job> jobOf(const RowKernel &kernel);

/// A module with `mp_rows` and, if the kernel has column sums, `mp_columns`, in
/// the dialects arith, math, scf, vector and llvm. Fails with an error if an op
/// has no form on vectors.
FailureOr<OwningOpRef<ModuleOp>> emitRows(const RowKernel &kernel);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_ROWS_ROWS_H
