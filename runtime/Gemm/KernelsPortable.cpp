//===- KernelsPortable.cpp - products of f32 -------------------------===//

#define MP_GEMM_LANES 4
#define MP_GEMM_BLOCK 4
#include "runtime/Gemm/KernelsImpl.h"

using namespace mp::runtime::gemm;

static bool isSupported() { return true; }

const Isa mp::runtime::gemm::kPortable = {"portable", Element::F32, isSupported,
                                          nothing,    nothing,      multiply};
