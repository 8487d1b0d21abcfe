//===- Entry.h - the functions of a CpuKernel in LLVM IR --------*- C++ -*-===//
//
// The functions of runtime/Kernel.h get no pointer to what they belong to, so
// each kernel has its own, which call those of runtime/Gemm or runtime/Rows
// with what the kernel is compiled with. That, and the functions, are symbols
// that the linker defines.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_ENTRY_H
#define MP_CODEGEN_CPU_ENTRY_H

#include "llvm/IR/Module.h"
#include <map>

namespace mp::runtime::gemm {
struct Product;
} // namespace mp::runtime::gemm
namespace mp::runtime::rows {
struct Job;
} // namespace mp::runtime::rows

namespace mlir::mp::cpu {

/// The table of functions that `addEntry` defines: scratchBytes, tasks, run,
/// and the compiled parts.
inline constexpr llvm::StringLiteral kTableName = "mp_table";
struct Table {
  void *scratchBytes, *tasks, *run;
  void *parts[2];
};

/// Adds the functions, and their table, to a module with the functions `parts`.
/// One that the module does not have is null in the table.
void addEntry(llvm::Module &module, llvm::ArrayRef<llvm::StringLiteral> parts);

/// What they refer to.
std::map<std::string, void *>
entrySymbols(const ::mp::runtime::gemm::Product *product);
std::map<std::string, void *> entrySymbols(const ::mp::runtime::rows::Job *job);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_ENTRY_H
