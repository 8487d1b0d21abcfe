//===- Loads.h - what a kernel reads ---------------------------*- C++ -*-===//
//
// A kernel reads of a buffer what its stored operations need of it: of a value
// that is computed inside the kernel and read through a slice or a gather, only
// that part is computed.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_LOADS_H
#define MP_PASSES_PLACEMENT_LOADS_H

#include "passes/Placement/Fusion.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::mp {

/// Elements that `kernel` reads of each buffer in memory, its own results
/// included. Parts of one buffer that are different views count one by one, and
/// together no more than the buffer.
llvm::MapVector<Value, int64_t> loadsOf(const FusionEstimate::Kernel &kernel,
                                        const FusionEstimate &fusion);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_LOADS_H
