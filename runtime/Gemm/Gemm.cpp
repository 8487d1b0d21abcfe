//===- Gemm.cpp - matrix products on the CPU ------------------------------===//

#include "runtime/Gemm/Gemm.h"
#include "runtime/Gemm/Plan.h"
#include "runtime/Gemm/Sums.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

using namespace mp::runtime;
using namespace mp::runtime::gemm;

namespace {
enum Phase : int32_t { Packing, Products, Sums };

struct Free {
  void operator()(void *memory) const { std::free(memory); }
};

/// Panels of a tile.
struct Range {
  int64_t begin, end;
};

/// One call: its plan, and where everything is.
struct Call {
  const Product &product;
  const Plan &plan;
  void *const *buffers;
  const int64_t *sizes;
  char *scratch;

  const char *matrix(const Operand &operand, int64_t b,
                     int64_t elements) const {
    auto *data = static_cast<const char *>(buffers[operand.buffer]);
    return data + (operand.batched ? b : 0) * elements * bytes();
  }
  const char *lhs(int64_t b) const {
    return matrix(product.lhs, b, plan.m * plan.k);
  }
  const char *rhs(int64_t b) const {
    return matrix(product.rhs, b, plan.k * plan.n);
  }
  char *packedRhs(int64_t b, int64_t panel) const {
    int64_t index = (product.rhs.batched ? b : 0) * plan.columnPanels + panel;
    return scratch + index * plan.panelBytes;
  }
  char *packedLhs(int64_t b, int64_t panel) const {
    int64_t matrix = product.lhs.batched ? b : 0;
    int64_t index = matrix * plan.lhsPerMatrix() + panel - plan.firstPacked;
    return scratch + plan.lhsOffset + index * plan.panelBytes;
  }
  int64_t bytes() const { return sizeOf(product.element); }

  void packRhs(int64_t task) const;
  void packLhs(int64_t task) const;
  Panel panelOf(int64_t b, int64_t panel, int64_t slice) const;
  void multiplyTile(int64_t index, float *sums) const;
  void finish(int64_t b, int64_t p, int64_t q, const float *sums) const;

  Range rowRange(int64_t tile) const {
    return {tile * plan.tileRows,
            std::min((tile + 1) * plan.tileRows, plan.rowPanels)};
  }
  Range columnRange(int64_t tile) const {
    return {tile * plan.tileColumns,
            std::min((tile + 1) * plan.tileColumns, plan.columnPanels)};
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void Call::packRhs(int64_t task) const {
  int64_t groups = Plan::groups(plan.columnPanels);
  int64_t b = task / groups, panel = task % groups * kGroup;
  int64_t column = panel * kColumns;
  bool ownIsRow = product.rhs.transposed;
  int64_t stride = ownIsRow ? plan.k : plan.n;
  Source source{rhs(b) + column * (ownIsRow ? stride : 1) * bytes(), stride,
                ownIsRow, std::min(kGroup * kColumns, plan.n - column), plan.k};
  plan.pack->rhs(source, packedRhs(b, panel), plan.panelBytes);
}

void Call::packLhs(int64_t task) const {
  int64_t groups = Plan::groups(plan.lhsPerMatrix());
  int64_t b = task / groups;
  int64_t panel = plan.firstPacked + task % groups * kGroup;
  int64_t row = panel * kRows;
  bool ownIsRow = !product.lhs.transposed;
  int64_t stride = ownIsRow ? plan.k : plan.m;
  Source source{lhs(b) + row * (ownIsRow ? stride : 1) * bytes(), stride,
                ownIsRow, std::min(kGroup * kRows, plan.m - row), plan.k};
  plan.pack->lhs(source, packedLhs(b, panel), plan.panelBytes);
}

static void pack(const Call &call, int64_t begin, int64_t end) {
  int64_t rhsTasks = call.plan.rhsTasks();
  for (int64_t i = begin; i != end; ++i) {
    if (i < rhsTasks)
      call.packRhs(i);
    else
      call.packLhs(i - rhsTasks);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A panel of A from a slice on.
Panel Call::panelOf(int64_t b, int64_t panel, int64_t slice) const {
  int64_t element = sizeOf(plan.isa->packed);
  if (panel >= plan.firstPacked) {
    int64_t row = kDepth * element;
    return {packedLhs(b, panel) + slice * kRows * row, row, kRows * row,
            16 * row};
  }
  int64_t row = plan.k * element;
  return {lhs(b) + panel * kRows * row + slice * kDepth * element, row,
          kDepth * element, 16 * row};
}

/// Sums for a task, of this thread. They do not shrink again.
static float *sumsOfThread(int64_t elements) {
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t capacity = 0;
  if (elements > capacity) {
    memory.reset(static_cast<float *>(
        std::aligned_alloc(4096, size_t((elements * 4 + 4095) / 4096 * 4096))));
    capacity = memory ? elements : 0;
  }
  return memory.get();
}

void Call::multiplyTile(int64_t index, float *sums) const {
  // Down the rows first: the panels of B stay for the next task.
  int64_t b = index / (plan.rowTiles * plan.columnTiles);
  Range rows = rowRange(index % plan.rowTiles);
  Range columns = columnRange(index / plan.rowTiles % plan.columnTiles);
  int64_t sliceBytes = kDepth * kColumns * sizeOf(plan.isa->packed);
  // Once at least: products of no terms are zero.
  for (int64_t slice = 0; slice == 0 || slice < plan.slices;
       slice += plan.sliceStep) {
    int64_t slices = std::min(plan.sliceStep, plan.slices - slice);
    float *block = sums;
    for (int64_t p = rows.begin; p != rows.end; ++p) {
      Panel panel = panelOf(b, p, slice);
      for (int64_t q = columns.begin; q != columns.end;
           ++q, block += kBlock * kBlock) {
        plan.isa->multiply(panel, packedRhs(b, q) + slice * sliceBytes, slices,
                           block, slice == 0);
        if (slice + slices == plan.slices)
          finish(b, p, q, block);
      }
    }
  }
}

void Call::finish(int64_t b, int64_t p, int64_t q, const float *sums) const {
  int64_t row = p * kRows, column = q * kColumns;
  Block block{sums,
              b,
              row,
              column,
              std::min(kRows, plan.m - row),
              std::min(kColumns, plan.n - column)};
  product.finish(&block, buffers, sizes);
}

static void multiply(const Call &call, int64_t begin, int64_t end) {
  const Plan &plan = call.plan;
  float *sums =
      sumsOfThread(plan.tileRows * kRows * plan.tileColumns * kColumns);
  plan.isa->begin();
  for (int64_t i = begin; i != end; ++i)
    call.multiplyTile(i, sums);
  plan.isa->end();
}

//===----------------------------------------------------------------------===//
// The functions of a kernel
//===----------------------------------------------------------------------===//

int32_t mp::runtime::gemm::phases(const Product &product) {
  return product.sumCount ? Sums + 1 : Sums;
}

int64_t mp::runtime::gemm::scratchBytes(const Product &product,
                                        const int64_t *sizes, int32_t threads) {
  return planFor(product, sizes, threads).scratchBytes;
}

int64_t mp::runtime::gemm::tasks(const Product &product, int32_t phase,
                                 const int64_t *sizes, int32_t threads) {
  if (phase == Sums)
    return sumTasks(product, sizes);
  Plan plan = planFor(product, sizes, threads);
  return phase == Packing ? plan.rhsTasks() + plan.lhsTasks()
                          : plan.productTasks();
}

void mp::runtime::gemm::run(const Product &product, int32_t phase,
                            int64_t begin, int64_t end, void *const *buffers,
                            const int64_t *sizes, void *scratch,
                            int32_t threads) {
  if (phase == Sums)
    return runSums(product, begin, end, buffers, sizes);
  Plan plan = planFor(product, sizes, threads);
  Call call{product, plan, buffers, sizes, static_cast<char *>(scratch)};
  if (phase == Packing)
    pack(call, begin, end);
  else
    multiply(call, begin, end);
}
