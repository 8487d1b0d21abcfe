//===- KernelsAVX512BF16.cpp - products of bf16 by vdpbf16ps --------------===//

#include "runtime/Gemm/Isa.h"

#include <cstring>
#include <immintrin.h>

using namespace mp::runtime::gemm;

static bool isSupported() {
  static const bool supported = __builtin_cpu_supports("avx512bf16") &&
                                __builtin_cpu_supports("avx512bw");
  return supported;
}

static void nothing() {}

/// Rows whose sums are in registers at a time, two vectors each.
static constexpr int kSumRows = 8;

static __m512bh broadcastPair(const char *pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof bits);
  return __m512bh(_mm512_set1_epi32(bits));
}

static void multiplyRows(const char *a, int64_t row, int64_t tile,
                         const char *b, int64_t slices, float *c,
                         bool isFirst) {
  __m512 sums[kSumRows][2];
  for (int r = 0; r != kSumRows; ++r)
    for (int v = 0; v != 2; ++v)
      sums[r][v] = isFirst ? _mm512_setzero_ps()
                           : _mm512_loadu_ps(c + r * kColumns + 16 * v);
  for (int64_t i = 0; i != slices; ++i, a += tile, b += 2048)
    for (int pair = 0; pair != 16; ++pair) {
      auto left = __m512bh(_mm512_loadu_si512(b + 64 * pair));
      auto right = __m512bh(_mm512_loadu_si512(b + 1024 + 64 * pair));
      for (int r = 0; r != kSumRows; ++r) {
        __m512bh both = broadcastPair(a + r * row + 4 * pair);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], both, left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], both, right);
      }
    }
  for (int r = 0; r != kSumRows; ++r)
    for (int v = 0; v != 2; ++v)
      _mm512_storeu_ps(c + r * kColumns + 16 * v, sums[r][v]);
}

static void multiply(const Panel &a, const void *b, int64_t slices, float *c,
                     bool isFirst) {
  for (int64_t r = 0; r != kRows; r += kSumRows) {
    const char *rows =
        static_cast<const char *>(a.data) + r / 16 * a.half + r % 16 * a.row;
    multiplyRows(rows, a.row, a.tile, static_cast<const char *>(b), slices,
                 c + r * kColumns, isFirst);
  }
}

const Isa mp::runtime::gemm::kAVX512BF16 = {
    "avx512_bf16", Element::BF16, isSupported, nothing, nothing, multiply};
