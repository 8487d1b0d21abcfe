//===- Plan.h - how one product is divided ----------------------*- C++ -*-===//

#ifndef RUNTIME_GEMM_PLAN_H
#define RUNTIME_GEMM_PLAN_H

#include "runtime/Gemm/Isa.h"

namespace mp::runtime::gemm {

/// The sizes of one call, and the blocks that it is computed in. A task of the
/// products is `tileRows` by `tileColumns` of one matrix; its sums stay in the
/// second cache while slices of `sliceDepth` values of k go by, whose panels
/// stay in the first.
struct Plan {
  int64_t batch, m, n, k;
  const Isa *isa;
  const Pack *pack;

  int64_t slices;    ///< of kDepth values of k, in all
  int64_t sliceStep; ///< of those in one pass over a task's sums
  int64_t rowPanels, columnPanels;
  int64_t tileRows, tileColumns; ///< in panels
  int64_t rowTiles, columnTiles; ///< tasks of one matrix

  int64_t rhsMatrices, lhsMatrices; ///< 1 unless batched
  /// Panels of A from this one on are packed: all, the last one, or none.
  int64_t firstPacked;
  int64_t panelBytes; ///< of a packed panel of either
  int64_t rhsOffset, lhsOffset, scratchBytes;

  int64_t lhsPerMatrix() const { return rowPanels - firstPacked; }
  int64_t rhsPanels() const { return rhsMatrices * columnPanels; }
  int64_t lhsPanels() const { return lhsMatrices * lhsPerMatrix(); }
  /// A task packs up to kGroup panels.
  static int64_t groups(int64_t panels) {
    return (panels + kGroup - 1) / kGroup;
  }
  int64_t rhsTasks() const { return rhsMatrices * groups(columnPanels); }
  int64_t lhsTasks() const { return lhsMatrices * groups(lhsPerMatrix()); }
  int64_t productTasks() const { return batch * rowTiles * columnTiles; }
};

Plan planFor(const Product &product, const int64_t *sizes, int32_t threads);

} // namespace mp::runtime::gemm

#endif // RUNTIME_GEMM_PLAN_H
