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
  int tile;

  int copies() const { return isKMajor ? 1 : tile / kStep; }
  int copyBytes() const { return tile * kStep * 2 / copies(); }
};

/// Results are stored in strips of so many columns: one box of 128 bytes if
/// elements have two bytes.
inline constexpr int kStrip = 64;
inline constexpr int kBoxBytes = kRowsOfWgmma * kSwizzleBytes;

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
  int stagedAt = 0;

  int elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Boxes of kStrip columns, 64 rows each.
  int boxes() const { return kStrip * elementBytes() / kSwizzleBytes; }
};

struct Plan {
  const Schedule *schedule;
  Extent batch, m, n, k;
  OperandPlan lhs, rhs;
  llvm::SmallVector<ResultPlan> results;
  /// Those of lhs and rhs, then those of results.
  llvm::SmallVector<::mp::runtime::TensorMap> maps;

  /// Stages of the ring.
  int stages = 0;
  /// Bytes that one warpgroup stages of a strip, and how many such buffers it
  /// has.
  int stagedBytes = 0, stagingBuffers = 0;

  // Shared memory: the ring, the staging buffers of each warpgroup, then for
  // each stage a barrier "full" and a barrier "empty".
  int ringBytes() const { return stages * schedule->stageBytes(); }
  int stagingBytes() const {
    return schedule->consumers * stagingBuffers * stagedBytes;
  }
  int barrierOffset() const { return ringBytes() + stagingBytes(); }
  int sharedBytes() const { return barrierOffset() + stages * 2 * 8; }
  bool isBatchedKernel() const { return batch.size >= 0 || batch.factor != 1; }
};

/// Plans the kernel. Where this path cannot take it, says why and leaves it to
/// the mma.sync kernel.
FailureOr<Plan> plan(const MatmulKernel &kernel, const Schedule &schedule,
                     std::string &whyNot);

/// The schedule that fits the shape best: the most work in flight without
/// leaving multiprocessors idle.
const Schedule &chooseSchedule(const MatmulKernel &kernel, int processors);

/// Whether the tiles are so few, and k so long, that a kernel that splits k is
/// the better one.
bool leavesIdle(const MatmulKernel &kernel, const Schedule &schedule,
                int processors);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_PLAN_H
