//===- PackAVX512.cpp - packed panels by shuffles of whole vectors --------===//

#include "runtime/Gemm/PackKernels.h"

#include <immintrin.h>

using namespace mp::runtime::gemm;

static __mmask16 firstOf16(int64_t count) {
  return __mmask16(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

static __mmask32 firstOf32(int64_t count) {
  return count >= 32  ? ~__mmask32(0)
         : count <= 0 ? 0
                      : (__mmask32(1) << count) - 1;
}

/// Rows become columns, in units of 32 bits: three rounds of shuffles within
/// and between the quarters of a vector.
static inline void transpose(__m512i v[16]) {
  __m512i t[16];
  for (int i = 0; i != 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i != 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i != 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
  for (int i = 0; i != 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

static inline void store(const __m512i v[16], char *to, int64_t stride) {
  for (int i = 0; i != 16; ++i)
    _mm512_storeu_si512(to + i * stride, v[i]);
}

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

/// Up to 16 stored rows of up to 32 values.
static inline void loadRows(const uint16_t *source, int64_t stride,
                            int64_t rows, int64_t values, __m512i v[16]) {
  __mmask32 mask = firstOf32(values);
  for (int i = 0; i != 16; ++i)
    v[i] = i < rows ? _mm512_maskz_loadu_epi16(mask, source + i * stride)
                    : _mm512_setzero_si512();
}

/// Rows k and k + 1 of up to 32 values each, one after the other: values 0-15
/// of both into `low`, 16-31 into `high`.
static inline void interleave(const uint16_t *source, int64_t stride,
                              int64_t depth, __mmask32 mask, __m512i &low,
                              __m512i &high) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11,
                                         42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  __m512i a = depth > 0 ? _mm512_maskz_loadu_epi16(mask, source)
                        : _mm512_setzero_si512();
  __m512i b = depth > 1 ? _mm512_maskz_loadu_epi16(mask, source + stride)
                        : _mm512_setzero_si512();
  low = _mm512_permutex2var_epi16(a, first, b);
  high = _mm512_permutex2var_epi16(a, second, b);
}

/// B stored [n][k]: the tile of 16 columns is their transpose in pairs.
static void packColumns(const uint16_t *source, int64_t stride, int64_t depth,
                        int64_t columns, char *out) {
  for (int64_t k = 0; k < depth; k += kDepth, out += 2048)
    for (int64_t half = 0; half != 2; ++half) {
      __m512i v[16];
      loadRows(source + 16 * half * stride + k, stride, columns - 16 * half,
               depth - k, v);
      transpose(v);
      store(v, out + 1024 * half, 64);
    }
}

/// B stored [k][n].
static void packPairs(const uint16_t *source, int64_t stride, int64_t depth,
                      int64_t columns, char *out) {
  __mmask32 mask = firstOf32(columns);
  for (int64_t k = 0; k < depth; k += kDepth, out += 2048)
    for (int64_t pair = 0; pair != 16; ++pair) {
      __m512i low, high;
      interleave(source + (k + 2 * pair) * stride, stride, depth - k - 2 * pair,
                 mask, low, high);
      _mm512_storeu_si512(out + 64 * pair, low);
      _mm512_storeu_si512(out + 1024 + 64 * pair, high);
    }
}

static void packRhsBF16(const void *source, int64_t stride, bool transposed,
                        int64_t depth, int64_t columns, void *panel) {
  auto *from = static_cast<const uint16_t *>(source);
  auto *out = static_cast<char *>(panel);
  if (transposed)
    packColumns(from, stride, depth, columns, out);
  else
    packPairs(from, stride, depth, columns, out);
}

/// A stored [m][k].
static void packRows(const uint16_t *source, int64_t stride, int64_t depth,
                     int64_t rows, char *out) {
  for (int64_t k = 0; k < depth; k += kDepth, out += 2048)
    for (int64_t half = 0; half != 2; ++half) {
      __m512i v[16];
      loadRows(source + 16 * half * stride + k, stride, rows - 16 * half,
               depth - k, v);
      store(v, out + 1024 * half, 64);
    }
}

/// A stored [k][m].
static void packTransposedRows(const uint16_t *source, int64_t stride,
                               int64_t depth, int64_t rows, char *out) {
  __mmask32 mask = firstOf32(rows);
  for (int64_t k = 0; k < depth; k += kDepth, out += 2048) {
    __m512i low[16], high[16];
    for (int64_t pair = 0; pair != 16; ++pair)
      interleave(source + (k + 2 * pair) * stride, stride, depth - k - 2 * pair,
                 mask, low[pair], high[pair]);
    transpose(low);
    store(low, out, 64);
    transpose(high);
    store(high, out + 1024, 64);
  }
}

static void packLhsBF16(const void *source, int64_t stride, bool transposed,
                        int64_t depth, int64_t rows, void *panel) {
  auto *from = static_cast<const uint16_t *>(source);
  auto *out = static_cast<char *>(panel);
  if (transposed)
    packTransposedRows(from, stride, depth, rows, out);
  else
    packRows(from, stride, depth, rows, out);
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

static inline void loadRows(const float *source, int64_t stride, int64_t rows,
                            int64_t values, __m512i v[16]) {
  __mmask16 mask = firstOf16(values);
  for (int i = 0; i != 16; ++i)
    v[i] = i < rows ? _mm512_maskz_loadu_epi32(mask, source + i * stride)
                    : _mm512_setzero_si512();
}

/// Blocks of 16 by 16, transposed or not, to where `place` says that a block
/// (own, k) starts and how far its rows are apart.
template <typename Place>
static void packBlocks(const float *source, int64_t stride, bool ownIsRow,
                       bool transposes, int64_t depth, int64_t own,
                       Place place) {
  int64_t padded = (depth + kDepth - 1) / kDepth * kDepth;
  for (int64_t k = 0; k != padded; k += 16)
    for (int64_t i = 0; i != 32; i += 16) {
      __m512i v[16];
      int64_t first = ownIsRow ? i : k, second = ownIsRow ? k : i;
      int64_t rows = ownIsRow ? own - i : depth - k;
      int64_t values = ownIsRow ? depth - k : own - i;
      loadRows(source + first * stride + second, stride, rows, values, v);
      if (transposes)
        transpose(v);
      auto [to, apart] = place(i, k);
      store(v, reinterpret_cast<char *>(to), apart * int64_t(sizeof(float)));
    }
}

namespace {
struct Spot {
  float *to;
  int64_t apart;
};
} // namespace

static void packRhsF32(const void *source, int64_t stride, bool transposed,
                       int64_t depth, int64_t columns, void *panel) {
  auto *out = static_cast<float *>(panel);
  packBlocks(static_cast<const float *>(source), stride, transposed, transposed,
             depth, columns, [&](int64_t i, int64_t k) {
               return Spot{out + k * kColumns + i, kColumns};
             });
}

static void packLhsF32(const void *source, int64_t stride, bool transposed,
                       int64_t depth, int64_t rows, void *panel) {
  auto *out = static_cast<float *>(panel);
  packBlocks(static_cast<const float *>(source), stride, !transposed,
             transposed, depth, rows, [&](int64_t i, int64_t k) {
               float *slice = out + k / kDepth * kRows * kDepth;
               return Spot{slice + i * kDepth + k % kDepth, kDepth};
             });
}

const Pack mp::runtime::gemm::kAVX512Packs[] = {
    {Element::BF16, Element::BF16, packRhsBF16, packLhsBF16},
    {Element::F32, Element::F32, packRhsF32, packLhsF32},
};

const int mp::runtime::gemm::kAVX512PackCount =
    sizeof kAVX512Packs / sizeof *kAVX512Packs;
