//===- Traffic.h - bytes that a graph moves --------------------*- C++ -*-===//
//
// Counts what the kernels of a FusionEstimate read and store. It knows nothing
// of a placement: a placement is judged by counting again after it was applied.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_TRAFFIC_H
#define MP_PASSES_PLACEMENT_TRAFFIC_H

#include "passes/Placement/Fusion.h"

namespace mlir::mp {

struct Traffic {
  /// One kernel of the estimate.
  struct Kernel {
    int64_t readBytes = 0, storedBytes = 0;
    SmallVector<Value, 4> reads; ///< buffers of other kernels, and arguments
    bool onlyConverts = false;
  };

  int64_t fusedBytes = 0;    ///< read and stored by generated kernels
  int64_t externalBytes = 0; ///< read and stored by library calls and the like
  int64_t savedBytes = 0;    ///< made by forward, read by backward
  int64_t fusedKernels = 0;
  int64_t externalKernels = 0;
  int64_t castKernels = 0; ///< generated kernels that only convert
  int64_t castBytes = 0;
  std::vector<Kernel> kernels; ///< in the order of the estimate
};

Traffic countTraffic(func::FuncOp func, const FusionEstimate &fusion);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_TRAFFIC_H
