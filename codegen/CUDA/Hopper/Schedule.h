//===- Schedule.h - tile sizes of the wgmma kernel --------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H
#define MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::mp::cuda::hopper {

inline constexpr int64_t kWarpgroup = 128; ///< Threads.
inline constexpr int64_t kRowsOfWgmma = 64;
inline constexpr int64_t kDepthOfWgmma = 16;
/// What one step along k covers: a row of 128 bytes, the widest swizzle.
inline constexpr int64_t kStep = 64;
inline constexpr int64_t kSwizzleBytes = 128;
/// The swizzle repeats after eight rows; buffers start at a multiple of that.
inline constexpr int64_t kAtomBytes = 8 * kSwizzleBytes;
/// Shared memory of a multiprocessor of sm_90, what the system takes of it for
/// each block.
inline constexpr int64_t kProcessorBytes = int64_t{228} * 1024,
                         kSystemBytes = 1024;

/// A row of Schedules.def.
struct Schedule {
  llvm::StringRef name;
  int64_t consumers;
  int64_t blockN;
  /// At most; less if results need much shared memory.
  int64_t stages;
  int64_t blocks;
  int64_t launchRegisters, producerRegisters, consumerRegisters;

  constexpr int64_t blockM() const { return kRowsOfWgmma * consumers; }
  constexpr int64_t threads() const { return kWarpgroup * (consumers + 1); }
  /// Shared memory of one stage: its part of lhs, then its part of rhs.
  constexpr int64_t lhsBytes() const { return blockM() * kStep * 2; }
  constexpr int64_t rhsBytes() const { return blockN * kStep * 2; }
  constexpr int64_t stageBytes() const { return lhsBytes() + rhsBytes(); }
  /// What a block may have if `blocks` share a multiprocessor.
  constexpr int64_t availableBytes() const {
    return kProcessorBytes / blocks - kSystemBytes;
  }
};

llvm::ArrayRef<Schedule> schedules();

/// The schedule of this name, or null.
const Schedule *findSchedule(llvm::StringRef name);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H
