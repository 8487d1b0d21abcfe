//===- Sums.cpp - sums over rows or columns of a stored matrix ------------===//
//
// Terms are added in groups of kGroupRows and groups to the sum, so that the
// error grows with the number of groups rather than that of terms. Which terms
// form a group depends on no thread.
//
//===----------------------------------------------------------------------===//

#include "runtime/Gemm/Sums.h"
#include "runtime/Numerics.h"

#include <algorithm>
#include <cstring>

using namespace mp::runtime;
using namespace mp::runtime::gemm;

/// Results of one task.
static constexpr int64_t kResults = 256;
static constexpr int64_t kGroupRows = 64;

namespace {
/// A sum with the sizes of a call.
struct Matrix {
  const Sum &sum;
  const char *data;
  int64_t rows, columns;

  Matrix(const Sum &sum, void *const *buffers, const int64_t *sizes)
      : sum(sum), data(static_cast<const char *>(buffers[sum.source])),
        rows(sum.rows.value(sizes)), columns(sum.columns.value(sizes)) {}

  /// Elements [column, column + count) of a row, in f32.
  void load(int64_t row, int64_t column, int64_t count, float *to) const;
};
} // namespace

void Matrix::load(int64_t row, int64_t column, int64_t count, float *to) const {
  const char *from = data + (row * columns + column) * sizeOf(sum.element);
  if (sum.element == Element::F32) {
    std::memcpy(to, from, size_t(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i != count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    if (sum.element == Element::BF16) {
      uint32_t wide = uint32_t(bits) << 16;
      std::memcpy(to + i, &wide, sizeof wide);
    } else {
      to[i] = mpopt::f16ToF32(bits);
    }
  }
}

static void sumRows(const Matrix &matrix, int64_t first, int64_t count,
                    float *sums) {
  std::fill_n(sums, count, 0.0F);
  for (int64_t row = 0; row < matrix.rows; row += kGroupRows) {
    float group[kResults] = {}, terms[kResults];
    int64_t end = std::min(row + kGroupRows, matrix.rows);
    for (int64_t r = row; r != end; ++r) {
      matrix.load(r, first, count, terms);
      for (int64_t i = 0; i != count; ++i)
        group[i] += terms[i];
    }
    for (int64_t i = 0; i != count; ++i)
      sums[i] += group[i];
  }
}

static float sumRow(const Matrix &matrix, int64_t row) {
  float lanes[16] = {}, terms[kResults];
  for (int64_t column = 0; column < matrix.columns; column += kResults) {
    int64_t count = std::min(kResults, matrix.columns - column);
    matrix.load(row, column, count, terms);
    std::fill(terms + count, terms + kResults, 0.0F);
    for (int64_t i = 0; i != kResults; ++i)
      lanes[i % 16] += terms[i];
  }
  float sum = 0;
  for (float lane : lanes)
    sum += lane;
  return sum;
}

static void store(const Sum &sum, void *const *buffers, int64_t first,
                  int64_t count, const float *sums) {
  void *result = buffers[sum.result];
  for (int64_t i = 0; i != count; ++i) {
    if (sum.resultElement == Element::F32)
      static_cast<float *>(result)[first + i] = sums[i];
    else
      static_cast<uint16_t *>(result)[first + i] =
          sum.resultElement == Element::BF16 ? mpopt::f32ToBF16(sums[i])
                                             : mpopt::f32ToF16(sums[i]);
  }
}

static int64_t resultsOf(const Sum &sum, const int64_t *sizes) {
  return (sum.overRows ? sum.columns : sum.rows).value(sizes);
}

static int64_t tasksOf(const Sum &sum, const int64_t *sizes) {
  return (resultsOf(sum, sizes) + kResults - 1) / kResults;
}

static void runTask(const Sum &sum, int64_t task, void *const *buffers,
                    const int64_t *sizes) {
  Matrix matrix(sum, buffers, sizes);
  int64_t first = task * kResults;
  int64_t count = std::min(kResults, resultsOf(sum, sizes) - first);
  float sums[kResults];
  if (sum.overRows)
    sumRows(matrix, first, count, sums);
  else
    for (int64_t i = 0; i != count; ++i)
      sums[i] = sumRow(matrix, first + i);
  store(sum, buffers, first, count, sums);
}

int64_t mp::runtime::gemm::sumTasks(const Product &product,
                                    const int64_t *sizes) {
  int64_t count = 0;
  for (int32_t i = 0; i != product.sumCount; ++i)
    count += tasksOf(product.sums[i], sizes);
  return count;
}

void mp::runtime::gemm::runSums(const Product &product, int64_t begin,
                                int64_t end, void *const *buffers,
                                const int64_t *sizes) {
  int64_t base = 0;
  for (int32_t i = 0; i != product.sumCount; ++i) {
    int64_t count = tasksOf(product.sums[i], sizes);
    int64_t last = std::min(end - base, count);
    for (int64_t task = std::max<int64_t>(begin - base, 0); task < last; ++task)
      runTask(product.sums[i], task, buffers, sizes);
    base += count;
  }
}
