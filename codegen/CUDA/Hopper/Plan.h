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
  /// Where a tile of it is staged in shared memory.
  int sharedOffset = 0;

  int elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
};

struct Plan {
  const Schedule *schedule;
  Extent batch, m, n, k;
  OperandPlan lhs, rhs;
  llvm::SmallVector<ResultPlan> results;
  /// Those of lhs and rhs, then those of results.
  llvm::SmallVector<::mp::runtime::TensorMap> maps;

  bool isBatchedKernel() const { return batch.size >= 0 || batch.factor != 1; }
};

/// Plans the kernel. Where this path cannot take it, says why and leaves it to
/// the mma.sync kernel.
FailureOr<Plan> plan(const MatmulKernel &kernel, const Schedule &schedule,
                     std::string &whyNot);

/// The schedule that fits the shape best: the most work in flight without
/// leaving multiprocessors idle.
const Schedule &chooseSchedule(const MatmulKernel &kernel, int processors);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_PLAN_H
