//===- TensorMaps.h - matrices for the tensor memory accelerator *- C++ -*-===//

#ifndef RUNTIME_CUDA_TENSORMAPS_H
#define RUNTIME_CUDA_TENSORMAPS_H

#include "runtime/CUDA/Driver.h"
#include "runtime/Kernel.h"

namespace mp::runtime::cuda {

/// Makes what a launch passes for `map`, a view of the buffer at `address`.
bool encode(const Driver &driver, const TensorMap &map, void *address,
            const int64_t *sizes, EncodedMap &encoded, std::string &error);

} // namespace mp::runtime::cuda

#endif // RUNTIME_CUDA_TENSORMAPS_H
