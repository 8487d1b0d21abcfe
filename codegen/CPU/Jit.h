//===- Jit.h - machine code in process --------------------------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_JIT_H
#define MP_CODEGEN_CPU_JIT_H

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Target/TargetMachine.h"
#include <map>

namespace mlir::mp::cpu {

/// What code is compiled for.
struct CodeTarget {
  llvm::orc::JITTargetMachineBuilder builder;
  /// Whether an instruction converts f16.
  bool hasF16;

  /// CPU and features, for a key of what is compiled.
  std::string str() const;
};

/// Compiles for the machine that runs and links in process.
class Jit {
public:
  /// The one of this process.
  static llvm::Expected<Jit &> get();

  /// This machine, or as much of it as has the instructions that `isa` names
  /// (runtime/Gemm/Gemm.h). Empty if it lacks them.
  std::optional<CodeTarget> findTarget(llvm::StringRef isa) const;

  /// Machine code of a module, which is optimised.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  compile(llvm::Module &module, const CodeTarget &target);

  /// Links an object that may refer to `symbols`, and returns the address of
  /// `name` in it.
  llvm::Expected<void *> link(std::unique_ptr<llvm::MemoryBuffer> object,
                              llvm::StringRef name,
                              const std::map<std::string, void *> &symbols);

private:
  Jit(llvm::orc::JITTargetMachineBuilder host,
      std::unique_ptr<llvm::orc::LLJIT> engine)
      : host(std::move(host)), engine(std::move(engine)) {}
  static llvm::Expected<std::unique_ptr<Jit>> create();

  llvm::orc::JITTargetMachineBuilder host;
  std::unique_ptr<llvm::orc::LLJIT> engine;
  unsigned libraries = 0;
};

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_JIT_H
