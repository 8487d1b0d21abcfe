//===- Rows.cpp - row kernels on the CPU ----------------------------------===//

#include "runtime/Rows/Rows.h"
#include <algorithm>

using namespace mp::runtime;
using namespace mp::runtime::rows;

/// Elements of a task, at least, where rows are independent.
static constexpr int64_t kTaskElements = 1 << 14;
/// Blocks with partial sums: enough for many threads, few to add up.
static constexpr int64_t kMostBlocks = 64;
/// Rows of such a block, at least: a block costs about as much as two rows.
static constexpr int64_t kLeastRows = 16;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t rowsOfTask(const Job &job, int64_t rows) {
  if (job.partialBytes != 0)
    return std::max(kLeastRows, ceilDiv(rows, kMostBlocks));
  return std::max<int64_t>(1,
                           kTaskElements / std::max<int64_t>(1, job.columns));
}

static int64_t rowTasks(const Job &job, int64_t rows) {
  return ceilDiv(rows, rowsOfTask(job, rows));
}

int32_t rows::phases(const Job &job) { return job.partialBytes != 0 ? 2 : 1; }

int64_t rows::scratchBytes(const Job &job, const int64_t *sizes) {
  return job.partialBytes * rowTasks(job, job.rows.value(sizes));
}

int64_t rows::tasks(const Job &job, int32_t phase, const int64_t *sizes) {
  return phase == 0 ? rowTasks(job, job.rows.value(sizes))
                    : ceilDiv(job.columns, kColumns);
}

void rows::run(const Job &job, int32_t phase, int64_t begin, int64_t end,
               void *const *buffers, const int64_t *sizes, void *scratch) {
  int64_t rows = job.rows.value(sizes);
  auto *partials = static_cast<char *>(scratch);
  if (phase == 1) {
    job.addColumns(begin * kColumns, std::min(end * kColumns, job.columns),
                   buffers, partials, rowTasks(job, rows));
    return;
  }
  int64_t step = rowsOfTask(job, rows);
  if (job.partialBytes == 0) {
    job.computeRows(begin * step, std::min(end * step, rows), buffers, nullptr);
    return;
  }
  for (int64_t block = begin; block != end; ++block)
    job.computeRows(block * step, std::min((block + 1) * step, rows), buffers,
                    partials + block * job.partialBytes);
}
