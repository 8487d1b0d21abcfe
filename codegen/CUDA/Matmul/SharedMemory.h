//===- SharedMemory.h - who has which part of shared memory -----*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_MATMUL_SHAREDMEMORY_H
#define MP_CODEGEN_CUDA_MATMUL_SHAREDMEMORY_H

#include "codegen/CUDA/Schedule.h"

namespace mlir::mp::cuda {

/// Bytes from the start of shared memory. The ring of the main loop and, later,
/// the epilogue's areas (one for each warp) have the start.
struct SharedPlan {
  int64_t width;    ///< elements of the epilogue's runs
  int64_t slab;     ///< rows of fragments in a warp's area at once
  int64_t rowBytes; ///< of a row there
  /// With runs of eight: all first halves of a row's runs come first, and the
  /// second halves so many bytes behind. Lanes that read a half each then read
  /// neighbours. 0 with shorter runs, whose elements keep their order.
  int64_t halfBytes;
  int64_t warpBytes;  ///< of an area
  int64_t columnSums; ///< where the column sums of the warps meet
  int64_t flag;       ///< a number that thread 0 tells the others
  int64_t total;

  int64_t slabRows() const { return 16 * slab; }
};

SharedPlan planShared(const MatmulKernel &kernel,
                      const MatmulSchedule &schedule);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_SHAREDMEMORY_H
