//===- Compile.h - kernels for the CPU, compiled in process -----*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_COMPILE_H
#define MP_CODEGEN_CPU_COMPILE_H

#include "runtime/Kernel.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::mp::cpu {

struct CpuOptions {
  /// Where compiled objects are kept, by digest; empty for nowhere.
  std::string cacheDirectory;
  /// Instructions to use (runtime/Gemm/Gemm.h); empty for the best.
  std::string isa;
  /// Where to leave kernel.mlir, vectors.mlir, kernel.ll and kernel.o of each
  /// kernel; empty for nowhere.
  std::string dumpDirectory;
};

/// How often this process compiled a kernel, and read one from the cache.
struct CpuCounters {
  unsigned compiled = 0, loaded = 0;
};
CpuCounters cpuCounters();

/// The kernel of a module in the form of the backend contract, for this
/// machine. A text is compiled at most once per process; the kernel lives as
/// long as the process. Thread-safe. An error says why the CPU does not take
/// it.
llvm::Expected<const ::mp::runtime::CpuKernel *>
compileCpuKernel(llvm::StringRef text, const CpuOptions &options);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_COMPILE_H
