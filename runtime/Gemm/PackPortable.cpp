//===- PackPortable.cpp - packed panels, one element after the other ------===//

#include "runtime/Gemm/PackKernels.h"
#include "runtime/Numerics.h"

#include <cstring>

using namespace mp::runtime::gemm;

namespace {
/// How one element is read as an f32.
template <Element>
struct Format;
template <>
struct Format<Element::F32> {
  using Bits = float;
  static float read(Bits bits) { return bits; }
};
template <>
struct Format<Element::BF16> {
  using Bits = uint16_t;
  static float read(Bits bits) { return mpopt::bf16ToF32(bits); }
};
template <>
struct Format<Element::F16> {
  using Bits = uint16_t;
  static float read(Bits bits) { return mpopt::f16ToF32(bits); }
};

/// A stored matrix seen as [own][k]: own are columns of B, rows of A.
template <Element From>
struct Source {
  const typename Format<From>::Bits *data;
  int64_t ownStride, depthStride;
  int64_t own, depth;

  float read(int64_t i, int64_t k) const {
    return i < own && k < depth
               ? Format<From>::read(data[i * ownStride + k * depthStride])
               : 0;
  }
  uint16_t bits(int64_t i, int64_t k) const {
    return i < own && k < depth ? data[i * ownStride + k * depthStride] : 0;
  }
};
} // namespace

static int64_t slicesOf(int64_t depth) { return (depth + kDepth - 1) / kDepth; }

template <Element From>
static void rhsToF32(const Source<From> &source, void *panel) {
  auto *out = static_cast<float *>(panel);
  for (int64_t k = 0; k != slicesOf(source.depth) * kDepth; ++k)
    for (int64_t i = 0; i != kColumns; ++i)
      *out++ = source.read(i, k);
}

template <Element From>
static void lhsToF32(const Source<From> &source, void *panel) {
  auto *out = static_cast<float *>(panel);
  for (int64_t slice = 0; slice != slicesOf(source.depth); ++slice)
    for (int64_t i = 0; i != kRows; ++i)
      for (int64_t k = 0; k != kDepth; ++k)
        *out++ = source.read(i, slice * kDepth + k);
}

static void rhsOfBF16(const Source<Element::BF16> &source, void *panel) {
  auto *out = static_cast<uint16_t *>(panel);
  for (int64_t slice = 0; slice != slicesOf(source.depth); ++slice)
    for (int64_t half = 0; half != 2; ++half)
      for (int64_t pair = 0; pair != 16; ++pair)
        for (int64_t i = 0; i != 16; ++i)
          for (int64_t k = 0; k != 2; ++k)
            *out++ = source.bits(16 * half + i, slice * kDepth + 2 * pair + k);
}

static void lhsOfBF16(const Source<Element::BF16> &source, void *panel) {
  auto *out = static_cast<uint16_t *>(panel);
  for (int64_t slice = 0; slice != slicesOf(source.depth); ++slice)
    for (int64_t i = 0; i != kRows; ++i)
      for (int64_t k = 0; k != kDepth; ++k)
        *out++ = source.bits(i, slice * kDepth + k);
}

/// `ownIsRow`: a stored row is one row of A or one column of B.
template <Element From>
static Source<From> sourceOf(const void *source, int64_t stride, bool ownIsRow,
                             int64_t depth, int64_t own) {
  auto *data = static_cast<const typename Format<From>::Bits *>(source);
  return {data, ownIsRow ? stride : 1, ownIsRow ? 1 : stride, own, depth};
}

template <Element From>
static void packRhsF32(const void *source, int64_t stride, bool transposed,
                       int64_t depth, int64_t columns, void *panel) {
  rhsToF32(sourceOf<From>(source, stride, transposed, depth, columns), panel);
}

template <Element From>
static void packLhsF32(const void *source, int64_t stride, bool transposed,
                       int64_t depth, int64_t rows, void *panel) {
  lhsToF32(sourceOf<From>(source, stride, !transposed, depth, rows), panel);
}

static void packRhsBF16(const void *source, int64_t stride, bool transposed,
                        int64_t depth, int64_t columns, void *panel) {
  rhsOfBF16(sourceOf<Element::BF16>(source, stride, transposed, depth, columns),
            panel);
}

static void packLhsBF16(const void *source, int64_t stride, bool transposed,
                        int64_t depth, int64_t rows, void *panel) {
  lhsOfBF16(sourceOf<Element::BF16>(source, stride, !transposed, depth, rows),
            panel);
}

const Pack mp::runtime::gemm::kPortablePacks[] = {
    {Element::F32, Element::F32, packRhsF32<Element::F32>,
     packLhsF32<Element::F32>},
    {Element::BF16, Element::F32, packRhsF32<Element::BF16>,
     packLhsF32<Element::BF16>},
    {Element::F16, Element::F32, packRhsF32<Element::F16>,
     packLhsF32<Element::F16>},
    {Element::BF16, Element::BF16, packRhsBF16, packLhsBF16},
};

const int mp::runtime::gemm::kPortablePackCount =
    sizeof kPortablePacks / sizeof *kPortablePacks;
