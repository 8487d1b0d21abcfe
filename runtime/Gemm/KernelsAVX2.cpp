//===- KernelsAVX2.cpp - products of f32 -----------------------------===//

#define MP_GEMM_LANES 8
#define MP_GEMM_BLOCK 4
#include "runtime/Gemm/KernelsImpl.h"

using namespace mp::runtime::gemm;

static bool isSupported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const Isa mp::runtime::gemm::kAVX2 = {"avx2",  Element::F32, isSupported,
                                      nothing, nothing,      multiply};
