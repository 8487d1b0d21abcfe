//===- Schedule.h - tile sizes of the wgmma kernel --------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H
#define MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::mp::cuda::hopper {

inline constexpr int kWarpgroup = 128; ///< Threads.
inline constexpr int kRowsOfWgmma = 64;
inline constexpr int kDepthOfWgmma = 16;
/// What one step along k covers: a row of 128 bytes, the widest swizzle.
inline constexpr int kStep = 64;
inline constexpr int kSwizzleBytes = 128;
/// The swizzle repeats after eight rows; buffers start at a multiple of that.
inline constexpr int kAtomBytes = 8 * kSwizzleBytes;
/// Shared memory that a block of sm_90 may have.
inline constexpr int kMaxSharedBytes = 227 * 1024;

/// A row of Schedules.def.
struct Schedule {
  llvm::StringRef name;
  int consumers;
  int blockN;
  int stages;
  int blocks;
  int launchRegisters, producerRegisters, consumerRegisters;

  constexpr int blockM() const { return kRowsOfWgmma * consumers; }
  constexpr int threads() const { return kWarpgroup * (consumers + 1); }
  /// Shared memory of one stage: its part of lhs, then its part of rhs.
  constexpr int lhsBytes() const { return blockM() * kStep * 2; }
  constexpr int rhsBytes() const { return blockN * kStep * 2; }
  constexpr int stageBytes() const { return lhsBytes() + rhsBytes(); }
  constexpr int ringBytes() const { return stages * stageBytes(); }
  /// The ring, then for each stage a barrier "full" and a barrier "empty".
  constexpr int sharedBytes() const { return ringBytes() + stages * 2 * 8; }
};

llvm::ArrayRef<Schedule> schedules();

/// The schedule of this name, or null.
const Schedule *findSchedule(llvm::StringRef name);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_SCHEDULE_H
