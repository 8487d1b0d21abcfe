//===- KernelsAVX512.cpp - the loops for AVX-512 F, BW, DQ and VL ---------===//

#include "runtime/Update/KernelsImpl.h"

const Kernels mpopt::update::kAVX512 = kernelsNamed("avx512", [] {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
});
