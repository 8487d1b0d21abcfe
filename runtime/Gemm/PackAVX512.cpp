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

/// Stored rows are columns of B: a tile is their transpose, in pairs of k. Or
/// they are rows of A: a tile is what they are.
template <bool Transposes>
static void packStoredRows(const Source &source, char *panel,
                           int64_t panelBytes) {
  auto *data = static_cast<const uint16_t *>(source.data);
  for (int64_t first = 0; first < source.own;
       first += kBlock, panel += panelBytes) {
    char *out = panel;
    for (int64_t k = 0; k < source.depth; k += kDepth)
      for (int64_t i = first; i != first + kBlock; i += 16, out += 1024) {
        __m512i v[16];
        loadRows(data + i * source.stride + k, source.stride, source.own - i,
                 source.depth - k, v);
        if (Transposes)
          transpose(v);
        store(v, out, 64);
      }
  }
}

/// Columns of B across stored rows: pairs of rows are interleaved.
static void packPairs(const Source &source, char *panels, int64_t panelBytes) {
  auto *data = static_cast<const uint16_t *>(source.data);
  for (int64_t k = 0; k < source.depth; k += 2, data += 2 * source.stride) {
    char *out = panels + k / kDepth * 2048 + k % kDepth * 32;
    for (int64_t first = 0; first < source.own;
         first += kBlock, out += panelBytes) {
      __m512i low, high;
      interleave(data + first, source.stride, source.depth - k,
                 firstOf32(source.own - first), low, high);
      _mm512_storeu_si512(out, low);
      _mm512_storeu_si512(out + 1024, high);
    }
  }
}

/// The pairs of the last slice behind the last value of k.
static void clearPairs(const Source &source, char *panels, int64_t panelBytes) {
  int64_t last = (source.depth + 1) / 2 * 2 % kDepth;
  if (last == 0)
    return;
  for (int64_t first = 0; first < source.own;
       first += kBlock, panels += panelBytes)
    for (int64_t k = last; k != kDepth; k += 2)
      for (int64_t half = 0; half != 2; ++half)
        _mm512_storeu_si512(panels + source.depth / kDepth * 2048 +
                                half * 1024 + k * 32,
                            _mm512_setzero_si512());
}

static void packRhsBF16(const Source &source, char *panels,
                        int64_t panelBytes) {
  if (source.ownIsRow)
    return packStoredRows</*Transposes=*/true>(source, panels, panelBytes);
  packPairs(source, panels, panelBytes);
  clearPairs(source, panels, panelBytes);
}

/// Rows of A across stored rows: the transpose of interleaved pairs.
static void packTransposed(const Source &source, char *panels,
                           int64_t panelBytes) {
  auto *data = static_cast<const uint16_t *>(source.data);
  for (int64_t k = 0; k < source.depth; k += kDepth, panels += 2048) {
    char *out = panels;
    for (int64_t first = 0; first < source.own;
         first += kBlock, out += panelBytes) {
      __mmask32 mask = firstOf32(source.own - first);
      __m512i low[16], high[16];
      for (int64_t pair = 0; pair != 16; ++pair)
        interleave(data + (k + 2 * pair) * source.stride + first, source.stride,
                   source.depth - k - 2 * pair, mask, low[pair], high[pair]);
      transpose(low);
      store(low, out, 64);
      transpose(high);
      store(high, out + 1024, 64);
    }
  }
}

static void packLhsBF16(const Source &source, char *panels,
                        int64_t panelBytes) {
  if (source.ownIsRow)
    return packStoredRows</*Transposes=*/false>(source, panels, panelBytes);
  packTransposed(source, panels, panelBytes);
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

/// The block of 16 by 16 at (own, k); its rows are stored rows.
static inline void loadBlock(const Source &source, int64_t own, int64_t k,
                             __m512i v[16]) {
  auto *data = static_cast<const float *>(source.data);
  if (source.ownIsRow)
    loadRows(data + own * source.stride + k, source.stride, source.own - own,
             source.depth - k, v);
  else
    loadRows(data + k * source.stride + own, source.stride, source.depth - k,
             source.own - own, v);
}

/// kBlock and kDepth are one number.
static int64_t padded(int64_t count) {
  static_assert(kBlock == kDepth);
  return (count + kDepth - 1) / kDepth * kDepth;
}

static void packRhsF32(const Source &source, char *panels, int64_t panelBytes) {
  for (int64_t k = 0; k != padded(source.depth); k += 16)
    for (int64_t i = 0; i != padded(source.own); i += 16) {
      __m512i v[16];
      loadBlock(source, i, k, v);
      if (source.ownIsRow)
        transpose(v);
      store(v, panels + i / kBlock * panelBytes + k * 128 + i % kBlock * 4,
            128);
    }
}

static void packLhsF32(const Source &source, char *panels, int64_t panelBytes) {
  for (int64_t k = 0; k != padded(source.depth); k += 16)
    for (int64_t i = 0; i != padded(source.own); i += 16) {
      __m512i v[16];
      loadBlock(source, i, k, v);
      if (!source.ownIsRow)
        transpose(v);
      store(v,
            panels + i / kBlock * panelBytes + k / kDepth * 4096 +
                i % kBlock * 128 + k % kDepth * 4,
            128);
    }
}

const Pack mp::runtime::gemm::kAVX512Packs[] = {
    {Element::BF16, Element::BF16, packRhsBF16, packLhsBF16},
    {Element::F32, Element::F32, packRhsF32, packLhsF32},
};

const int mp::runtime::gemm::kAVX512PackCount =
    sizeof kAVX512Packs / sizeof *kAVX512Packs;
