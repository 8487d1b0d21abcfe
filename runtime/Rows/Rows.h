//===- Rows.h - row kernels on the CPU --------------------------*- C++ -*-===//
//
// The part of a compiled row kernel that does not depend on its arithmetic: how
// rows are shared among threads. Without column sums, rows are independent.
// With them, rows are cut into blocks whose number depends on the rows alone,
// each block adds up its rows in order, and a second phase adds up the blocks
// in order: the same bits for any number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_ROWS_ROWS_H
#define RUNTIME_ROWS_ROWS_H

#include "runtime/Kernel.h"

namespace mp::runtime::rows {

/// Computes the rows [begin, end). `partials` gets what they add up to for each
/// column; null without column sums.
using RowsFunction = void (*)(int64_t begin, int64_t end, void *const *buffers,
                              char *partials);

/// Adds up the partial sums of all blocks for the columns [begin, end), and
/// stores what depends on them. `begin` is a multiple of kColumns; so is `end`,
/// or it is the last column's.
using ColumnsFunction = void (*)(int64_t begin, int64_t end,
                                 void *const *buffers, const char *partials,
                                 int64_t blocks);

/// Columns of a task of the second phase.
inline constexpr int64_t kColumns = 512;

/// What a kernel is compiled with. Plain data.
struct Job {
  Extent rows;
  int64_t columns = 0;
  int64_t partialBytes = 0; ///< of one block; 0 without column sums
  RowsFunction computeRows = nullptr;
  ColumnsFunction addColumns = nullptr;
};

/// The functions of CpuKernel for such a kernel. All are thread-safe.
int32_t phases(const Job &job);
int64_t scratchBytes(const Job &job, const int64_t *sizes);
int64_t tasks(const Job &job, int32_t phase, const int64_t *sizes);
void run(const Job &job, int32_t phase, int64_t begin, int64_t end,
         void *const *buffers, const int64_t *sizes, void *scratch);

} // namespace mp::runtime::rows

#endif // RUNTIME_ROWS_ROWS_H
