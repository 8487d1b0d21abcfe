//===- Retarget.h - a kernel for the host instead of NVPTX -----*- C++ -*-===//
//
// Rewrites the LLVM IR of a kernel so that the host can run it: intrinsics of
// NVPTX become calls of the emulator, each access to memory asks it first, and
// shared variables get addresses in the emulator's memory.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_RETARGET_H
#define TEST_EMULATOR_RETARGET_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::mp::emulator {

/// The functions that rewritten code calls; the linker defines them.
///   void  mp_emulator_operation(i32 operation, i32 site, ptr args, ptr
///   results) ptr   mp_emulator_access(ptr, i32 bytes, i32 align, i32 flags,
///   i32 site)
inline constexpr llvm::StringLiteral operationHook = "mp_emulator_operation";
inline constexpr llvm::StringLiteral accessHook = "mp_emulator_access";
/// void mp_emulator_entry(ptr args): calls the kernel with what args[i] point
/// to.
inline constexpr llvm::StringLiteral entryName = "mp_emulator_entry";

/// Functions with this prefix stand for inline PTX (hopper::replaceInlinePTX).
inline constexpr llvm::StringLiteral replacedPrefix = "mp.nvvm.";

/// Arguments and results of an operation lie this many bytes apart.
inline constexpr size_t slotBytes = 16;

enum AccessFlags : uint32_t { Read = 0, Write = 1, Atomic = 2 };

/// What the emulator must know of the rewritten code.
struct Retargeted {
  std::string kernel;
  /// Sizes of parameters, 0 for one by value of which the address is passed.
  std::vector<size_t> parameterBytes;
  /// Names of operations, without "llvm.nvvm.", by number.
  std::vector<std::string> operations;
  /// Instructions, by number; 0 is unknown.
  std::vector<std::string> sites;
  size_t staticSharedBytes = 0;
};

/// Rewrites `module` in place. `shared` is the address of shared memory; static
/// variables lie at its start, dynamic memory behind them. An empty `kernel`
/// stands for the only one.
llvm::Expected<Retargeted> retarget(llvm::Module &module, uint64_t shared,
                                    llvm::StringRef kernel);

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_RETARGET_H
