//===- Scratch.h - memory that a thread's calls use in turn -----*- C++ -*-===//

#ifndef RUNTIME_TORCH_SCRATCH_H
#define RUNTIME_TORCH_SCRATCH_H

#include <cstddef>

namespace mp::launch {

/// At least `bytes` of memory at a multiple of 64, valid until this thread's
/// next call. Null if there is none to be had.
void *scratch(size_t bytes);

} // namespace mp::launch

#endif // RUNTIME_TORCH_SCRATCH_H
