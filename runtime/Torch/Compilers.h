//===- Compilers.h - who makes a kernel that is not there yet ---*- C++ -*-===//
//
// The code generator lives in another library. The Python package, which knows
// both, puts two functions here, and calls back with what they made.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_TORCH_COMPILERS_H
#define RUNTIME_TORCH_COMPILERS_H

#include "runtime/Launch/Registry.h"

namespace mp::launch {

/// The compiled kernel; null after `mpoptFail` said why.
using CompileCpu = const runtime::CpuKernel *(*)(const char *text,
                                                 size_t length);
/// True once `mpoptLoadCuda` has been called for the device; false after
/// `mpoptFail` said why.
using CompileCuda = int (*)(const char *text, size_t length, int device);

/// The kernel of `entry`, compiled if it is not. Null with an `error`.
const runtime::CpuKernel *cpuKernel(runtime::Entry &entry, std::string &error);
const runtime::cuda::Program *cudaProgram(runtime::Entry &entry, int device,
                                          std::string &error);

} // namespace mp::launch

#endif // RUNTIME_TORCH_COMPILERS_H
