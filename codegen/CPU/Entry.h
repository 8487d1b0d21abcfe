//===- Entry.h - the functions of a CpuKernel in LLVM IR --------*- C++ -*-===//
//
// The functions of runtime/Kernel.h get no pointer to what they belong to, so
// each kernel has its own, which call those of runtime/Gemm with the kernel's
// Product. That, and the functions, are symbols that the linker defines.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CPU_ENTRY_H
#define MP_CODEGEN_CPU_ENTRY_H

#include "llvm/IR/Module.h"
#include <map>

namespace mp::runtime::gemm {
struct Product;
} // namespace mp::runtime::gemm

namespace mlir::mp::cpu {

/// The table of functions that `addEntry` defines: scratchBytes, tasks, run,
/// finish.
inline constexpr llvm::StringLiteral kTableName = "mp_table";
struct Table {
  void *scratchBytes, *tasks, *run, *finish;
};

/// Adds the functions, and their table, to a module with `mp_finish`.
void addEntry(llvm::Module &module);

/// What they refer to.
std::map<std::string, void *>
entrySymbols(const ::mp::runtime::gemm::Product *product);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_ENTRY_H
