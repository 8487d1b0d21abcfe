//===- KernelsImpl.h - products of f32, for any vectors ---------*- C++ -*-===//
//
// Included once by each source that is compiled for one instruction set, with
// MP_GEMM_LANES f32 to a vector and MP_GEMM_BLOCK rows in registers at a time.
//
//===----------------------------------------------------------------------===//

#include "runtime/Gemm/Isa.h"

#include <cstring>

namespace {

using mp::runtime::gemm::kColumns;

using Vector
    __attribute__((vector_size(4 * MP_GEMM_LANES), aligned(4), may_alias)) =
        float;

constexpr int kVectors = 32 / MP_GEMM_LANES;
/// Vectors of a row whose sums are in registers at a time.
constexpr int kAtOnce = kVectors < 2 ? kVectors : 2;

void multiplyRows(const char *a, int64_t row, int64_t tile, const float *b,
                  int64_t slices, float *c, bool isFirst) {
  constexpr int kSumRows = MP_GEMM_BLOCK;
  Vector sums[kSumRows][kAtOnce];
  for (int r = 0; r != kSumRows; ++r)
    for (int v = 0; v != kAtOnce; ++v) {
      sums[r][v] = Vector{};
      if (!isFirst)
        std::memcpy(&sums[r][v], c + r * kColumns + MP_GEMM_LANES * v,
                    sizeof(Vector));
    }
  for (int64_t i = 0; i != slices; ++i, a += tile)
    for (int k = 0; k != mp::runtime::gemm::kDepth; ++k, b += 32) {
      Vector right[kAtOnce];
      std::memcpy(right, b, sizeof right);
      for (int r = 0; r != kSumRows; ++r) {
        float left;
        std::memcpy(&left, a + r * row + 4 * k, sizeof left);
        for (int v = 0; v != kAtOnce; ++v)
          sums[r][v] += left * right[v];
      }
    }
  for (int r = 0; r != kSumRows; ++r)
    std::memcpy(c + r * kColumns, sums[r], sizeof sums[r]);
}

void multiply(const mp::runtime::gemm::Panel &a, const void *b, int64_t slices,
              float *c, bool isFirst) {
  constexpr int64_t rows = mp::runtime::gemm::kRows;
  static_assert(rows % MP_GEMM_BLOCK == 0);
  const char *left = static_cast<const char *>(a.data);
  for (int64_t r = 0; r != rows; r += MP_GEMM_BLOCK)
    for (int64_t v = 0; v != kVectors; v += kAtOnce)
      multiplyRows(left + r * a.row, a.row, a.tile,
                   static_cast<const float *>(b) + v * MP_GEMM_LANES, slices,
                   c + r * kColumns + v * MP_GEMM_LANES, isFirst);
}

void nothing() {}

} // namespace
