//===- PackKernels.h - packing by instruction set ---------------*- C++ -*-===//

#ifndef RUNTIME_GEMM_PACKKERNELS_H
#define RUNTIME_GEMM_PACKKERNELS_H

#include "runtime/Gemm/Isa.h"

namespace mp::runtime::gemm {

extern const Pack kPortablePacks[];
extern const int kPortablePackCount;

/// For machines with AVX512-BW: full panels only go through vectors of their
/// own, the rest through masked ones.
extern const Pack kAVX512Packs[];
extern const int kAVX512PackCount;

} // namespace mp::runtime::gemm

#endif // RUNTIME_GEMM_PACKKERNELS_H
