//===- Lowering.h - from vectors to LLVM IR ---------------------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_LOWERING_H
#define MP_CODEGEN_CPU_LOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace mlir::mp::cpu {

/// Lowers the arithmetic of `module` to the LLVM dialect: functions become
/// polynomials (codegen/docs/Functions.md), roundings to bf16 become integer
/// arithmetic that flushes nothing; and so do conversions of f16 unless the
/// machine `hasF16`.
LogicalResult lowerToLLVMDialect(ModuleOp module, bool hasF16);

/// Translates what lowerToLLVMDialect made.
std::unique_ptr<llvm::Module> translate(ModuleOp module,
                                        llvm::LLVMContext &context);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_LOWERING_H
