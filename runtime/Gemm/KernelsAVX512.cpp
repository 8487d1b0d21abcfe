//===- KernelsAVX512.cpp - products of f32 ---------------------------===//

#define MP_GEMM_LANES 16
#define MP_GEMM_BLOCK 8
#include "runtime/Gemm/KernelsImpl.h"

using namespace mp::runtime::gemm;

static bool isSupported() { return __builtin_cpu_supports("avx512f"); }

const Isa mp::runtime::gemm::kAVX512 = {"avx512", Element::F32, isSupported,
                                        nothing,  nothing,      multiply};
