//===- Gemm.cpp - matrix products on the CPU ------------------------------===//

#include "runtime/Gemm/Gemm.h"
#include "runtime/Gemm/Plan.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

using namespace mp::runtime;
using namespace mp::runtime::gemm;

namespace {
enum Phase : int32_t { Packing, Products, Count };

struct Free {
  void operator()(void *memory) const { std::free(memory); }
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
    int64_t perMatrix = plan.rowPanels - plan.firstPacked;
    return scratch + plan.lhsOffset +
           (matrix * perMatrix + panel - plan.firstPacked) * plan.panelBytes;
  }
  int64_t bytes() const { return sizeOf(product.element); }

  void packRhs(int64_t index) const;
  void packLhs(int64_t index) const;
  Panel panelOf(int64_t b, int64_t panel, int64_t slice) const;
  void multiplyTile(int64_t index, float *sums) const;
};
} // namespace

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void Call::packRhs(int64_t index) const {
  int64_t b = index / plan.columnPanels, panel = index % plan.columnPanels;
  bool transposed = product.rhs.transposed;
  int64_t column = panel * kColumns;
  int64_t stride = transposed ? plan.k : plan.n;
  const char *source = rhs(b) + column * (transposed ? stride : 1) * bytes();
  plan.pack->rhs(source, stride, transposed, plan.k,
                 std::min(kColumns, plan.n - column), packedRhs(b, panel));
}

void Call::packLhs(int64_t index) const {
  int64_t perMatrix = plan.rowPanels - plan.firstPacked;
  int64_t b = index / perMatrix;
  int64_t panel = plan.firstPacked + index % perMatrix;
  bool transposed = product.lhs.transposed;
  int64_t row = panel * kRows;
  int64_t stride = transposed ? plan.m : plan.k;
  const char *source = lhs(b) + row * (transposed ? 1 : stride) * bytes();
  plan.pack->lhs(source, stride, transposed, plan.k,
                 std::min(kRows, plan.m - row), packedLhs(b, panel));
}

static void pack(const Call &call, int64_t begin, int64_t end) {
  int64_t rhsPanels = call.plan.rhsPanels();
  for (int64_t i = begin; i != end; ++i) {
    if (i < rhsPanels)
      call.packRhs(i);
    else
      call.packLhs(i - rhsPanels);
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
  int64_t rowTile = index % plan.rowTiles;
  index /= plan.rowTiles;
  int64_t columnTile = index % plan.columnTiles;
  int64_t b = index / plan.columnTiles;
  int64_t firstRow = rowTile * plan.tileRows;
  int64_t firstColumn = columnTile * plan.tileColumns;
  int64_t lastRow = std::min(firstRow + plan.tileRows, plan.rowPanels);
  int64_t lastColumn =
      std::min(firstColumn + plan.tileColumns, plan.columnPanels);
  int64_t stride = (lastColumn - firstColumn) * kColumns;
  int64_t column = firstColumn * kColumns;
  int64_t count = std::min(stride, plan.n - column);
  int64_t sliceBytes = kDepth * kColumns * sizeOf(plan.isa->packed);

  // Once at least: products of no terms are zero.
  for (int64_t slice = 0; slice == 0 || slice < plan.slices;
       slice += plan.sliceStep) {
    int64_t slices = std::min(plan.sliceStep, plan.slices - slice);
    bool isLast = slice + slices == plan.slices;
    for (int64_t p = firstRow; p != lastRow; ++p) {
      float *rows = sums + (p - firstRow) * kRows * stride;
      Panel panel = panelOf(b, p, slice);
      for (int64_t q = firstColumn; q != lastColumn; ++q)
        plan.isa->multiply(panel, packedRhs(b, q) + slice * sliceBytes, slices,
                           rows + (q - firstColumn) * kColumns, stride,
                           slice == 0);
      if (!isLast)
        continue;
      int64_t end = std::min((p + 1) * kRows, plan.m);
      for (int64_t row = p * kRows; row < end; ++row, rows += stride)
        product.finish(rows, b, row, column, count, buffers, sizes);
    }
  }
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

int32_t mp::runtime::gemm::phases(const Product &) { return Count; }

int64_t mp::runtime::gemm::scratchBytes(const Product &product,
                                        const int64_t *sizes, int32_t threads) {
  return planFor(product, sizes, threads).scratchBytes;
}

int64_t mp::runtime::gemm::tasks(const Product &product, int32_t phase,
                                 const int64_t *sizes, int32_t threads) {
  Plan plan = planFor(product, sizes, threads);
  return phase == Packing ? plan.packTasks() : plan.productTasks();
}

void mp::runtime::gemm::run(const Product &product, int32_t phase,
                            int64_t begin, int64_t end, void *const *buffers,
                            const int64_t *sizes, void *scratch,
                            int32_t threads) {
  Plan plan = planFor(product, sizes, threads);
  Call call{product, plan, buffers, sizes, static_cast<char *>(scratch)};
  if (phase == Packing)
    pack(call, begin, end);
  else
    multiply(call, begin, end);
}
