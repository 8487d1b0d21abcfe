//===- Schedule.h - how a matmul is cut for a chip --------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_SCHEDULE_H
#define MP_CODEGEN_CUDA_SCHEDULE_H

#include "codegen/CUDA/Chip.h"
#include "codegen/Kernel/Kernel.h"
#include <string>

namespace mlir::mp::cuda {

/// A block of warps computes blockM x blockN of the result in steps of blockK,
/// each warp warpM x warpN of it. `stages` steps lie in shared memory at once.
struct MatmulSchedule {
  int64_t blockM, blockN, blockK;
  int64_t warpM, warpN;
  int64_t stages;
  /// Blocks that one multiprocessor is to hold at once; bounds the registers.
  int64_t resident = 1;
  /// Blocks that share the sum over k of one tile.
  int64_t splitK = 1;
  /// Rows of tiles that are computed together, so that they share what the L2
  /// cache holds of the other operand.
  int64_t group = 8;

  int64_t warps() const { return (blockM / warpM) * (blockN / warpN); }
  int64_t threads() const { return 32 * warps(); }
  /// Registers that a thread may have for `resident` to hold.
  int64_t registerLimit() const;
  /// "128x128x32 w64x64 s4 r2 k1 g8".
  std::string str() const;
};

/// The function of a kernel, also of a const one.
inline func::FuncOp functionOf(const MatmulKernel &kernel) {
  return kernel.func;
}

/// The reverse of `MatmulSchedule::str`; parts that are missing keep their
/// defaults.
FailureOr<MatmulSchedule> parseSchedule(llvm::StringRef text,
                                        Location location);

/// Why the emitter cannot follow a schedule; empty if it can.
std::string whyUnfit(const MatmulSchedule &schedule,
                     const MatmulKernel &kernel);

/// The schedules of a chip's table, largest tiles first.
llvm::ArrayRef<MatmulSchedule> schedulesOf(const Chip &chip);

/// The schedule that a model of waves and occupancy ranks first. A dynamic
/// extent counts as `dynamicSize`. Fails with a diagnostic where none fits.
FailureOr<MatmulSchedule> chooseSchedule(const MatmulKernel &kernel,
                                         const Chip &chip,
                                         int64_t dynamicSize = 4096);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_SCHEDULE_H
