//===- Jit.h - machine code in process --------------------------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_JIT_H
#define MP_CODEGEN_CPU_JIT_H

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Target/TargetMachine.h"
#include <map>

namespace mlir::mp::cpu {

/// Compiles for the machine that runs and links in process.
class Jit {
public:
  /// The one of this process.
  static llvm::Expected<Jit &> get();

  /// CPU and features, for a key of what is compiled.
  std::string targetText() const;

  /// Machine code of an optimised module.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  compile(llvm::Module &module);

  /// Links an object that may refer to `symbols`, and returns the address of
  /// `name` in it.
  llvm::Expected<void *> link(std::unique_ptr<llvm::MemoryBuffer> object,
                              llvm::StringRef name,
                              const std::map<std::string, void *> &symbols);

private:
  Jit(llvm::orc::JITTargetMachineBuilder target,
      std::unique_ptr<llvm::orc::LLJIT> engine)
      : target(std::move(target)), engine(std::move(engine)) {}
  static llvm::Expected<std::unique_ptr<Jit>> create();

  llvm::orc::JITTargetMachineBuilder target;
  std::unique_ptr<llvm::orc::LLJIT> engine;
  unsigned libraries = 0;
};

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_JIT_H
