//===- KernelsAVX2.cpp - the loops for AVX2, FMA and F16C -----------------===//

#include "runtime/Update/KernelsImpl.h"

const Kernels mpopt::update::kAVX2 = kernelsNamed("avx2", [] {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
});
