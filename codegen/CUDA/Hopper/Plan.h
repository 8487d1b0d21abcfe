//===- Plan.h - how a matmul becomes a wgmma kernel -------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_HOPPER_PLAN_H
#define MP_CODEGEN_CUDA_HOPPER_PLAN_H

#include "codegen/CUDA/Hopper/Schedule.h"
#include "codegen/Kernel/Kernel.h"
#include "runtime/Kernel.h"

namespace mlir::mp::cuda::hopper {

using ::mp::runtime::Extent;

/// One matrix operand: how its tile lies in shared memory.
struct OperandPlan {
  /// Whether k is the contiguous dimension. If not, the tile is cut into
  /// pieces of 64 rows or columns, one copy each.
  bool isKMajor;
  bool isBatched;
  /// Rows (lhs) or columns (rhs) of the tile.
  int64_t tile;

  int64_t copies() const { return isKMajor ? 1 : tile / kStep; }
  int64_t copyBytes() const { return tile * kStep * 2 / copies(); }
};

/// Results are stored in strips of so many columns: one box of 128 bytes if
/// elements have two bytes.
inline constexpr int64_t kStrip = 64;
inline constexpr int64_t kBoxBytes = kRowsOfWgmma * kSwizzleBytes;

/// One result of the kernel.
struct ResultPlan {
  /// The number of the kernel's result.
  unsigned result;
  /// The number of the value that the epilogue yields; none for the
  /// accumulator itself.
  std::optional<unsigned> yielded;
  Type element;
  /// The tensor map that stores it, where its rows allow one.
  std::optional<unsigned> map;
  /// Where its boxes stand among those that are staged together.
  int64_t stagedAt = 0;

  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Boxes of kStrip columns, 64 rows each.
  int64_t boxes() const { return kStrip * elementBytes() / kSwizzleBytes; }
};

struct Plan {
  const Schedule *schedule;
  Extent batch, m, n, k;
  OperandPlan lhs, rhs;
  llvm::SmallVector<ResultPlan> results;
  /// Those of lhs and rhs, then those of results.
  llvm::SmallVector<::mp::runtime::TensorMap> maps;

  /// Stages of the ring.
  int64_t stages = 0;
  /// Bytes that one warpgroup stages of a strip, and how many such buffers it
  /// has.
  int64_t stagedBytes = 0, stagingBuffers = 0;

  // Shared memory: the ring, the staging buffers of each warpgroup, then for
  // each stage a barrier "full" and a barrier "empty".
  int64_t ringBytes() const { return stages * schedule->stageBytes(); }
  int64_t stagingBytes() const {
    return schedule->consumers * stagingBuffers * stagedBytes;
  }
  int64_t barrierOffset() const { return ringBytes() + stagingBytes(); }
  int64_t sharedBytes() const { return barrierOffset() + stages * 2 * 8; }
  bool isBatchedKernel() const { return batch.size >= 0 || batch.factor != 1; }
};

/// Plans the kernel. Where this path cannot take it, says why and leaves it to
/// the mma.sync kernel.
FailureOr<Plan> plan(const MatmulKernel &kernel, const Schedule &schedule,
                     std::string &whyNot);

/// The schedule that fits the shape best: the most work in flight without
/// leaving multiprocessors idle.
const Schedule &chooseSchedule(const MatmulKernel &kernel, int64_t processors);

/// Whether the tiles are so few, and k so long, that a kernel that splits k is
/// the better one.
bool leavesIdle(const MatmulKernel &kernel, const Schedule &schedule,
                int64_t processors);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_PLAN_H
