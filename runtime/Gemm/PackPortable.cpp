//===- PackPortable.cpp - packed panels, one element after the other ------===//

#include "runtime/Gemm/PackKernels.h"
#include "runtime/Numerics.h"

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

/// One panel of a stored matrix, seen as [own][k].
template <Element From>
struct Elements {
  const typename Format<From>::Bits *data;
  int64_t ownStride, depthStride;
  int64_t own, depth;

  Elements(const Source &source, int64_t first)
      : data(static_cast<const typename Format<From>::Bits *>(source.data)),
        ownStride(source.ownIsRow ? source.stride : 1),
        depthStride(source.ownIsRow ? 1 : source.stride),
        own(source.own - first), depth(source.depth) {
    data += first * ownStride;
  }

  float read(int64_t i, int64_t k) const {
    return i < own && k < depth
               ? Format<From>::read(data[i * ownStride + k * depthStride])
               : 0;
  }
  uint16_t bits(int64_t i, int64_t k) const {
    return i < own && k < depth ? data[i * ownStride + k * depthStride] : 0;
  }
  int64_t slices() const { return (depth + kDepth - 1) / kDepth; }
};
} // namespace

template <Element From>
static void rhsToF32(const Elements<From> &source, char *panel) {
  auto *out = reinterpret_cast<float *>(panel);
  for (int64_t k = 0; k != source.slices() * kDepth; ++k)
    for (int64_t i = 0; i != kColumns; ++i)
      *out++ = source.read(i, k);
}

template <Element From>
static void lhsToF32(const Elements<From> &source, char *panel) {
  auto *out = reinterpret_cast<float *>(panel);
  for (int64_t slice = 0; slice != source.slices(); ++slice)
    for (int64_t i = 0; i != kRows; ++i)
      for (int64_t k = 0; k != kDepth; ++k)
        *out++ = source.read(i, slice * kDepth + k);
}

static void rhsOfBF16(const Elements<Element::BF16> &source, char *panel) {
  auto *out = reinterpret_cast<uint16_t *>(panel);
  for (int64_t slice = 0; slice != source.slices(); ++slice)
    for (int64_t half = 0; half != 2; ++half)
      for (int64_t pair = 0; pair != 16; ++pair)
        for (int64_t i = 0; i != 16; ++i)
          for (int64_t k = 0; k != 2; ++k)
            *out++ = source.bits(16 * half + i, slice * kDepth + 2 * pair + k);
}

static void lhsOfBF16(const Elements<Element::BF16> &source, char *panel) {
  auto *out = reinterpret_cast<uint16_t *>(panel);
  for (int64_t slice = 0; slice != source.slices(); ++slice)
    for (int64_t i = 0; i != kRows; ++i)
      for (int64_t k = 0; k != kDepth; ++k)
        *out++ = source.bits(i, slice * kDepth + k);
}

/// One panel after the other.
template <Element From, void (*PackPanel)(const Elements<From> &, char *)>
static void packPanels(const Source &source, char *panels, int64_t panelBytes) {
  for (int64_t first = 0; first < source.own;
       first += kBlock, panels += panelBytes)
    PackPanel(Elements<From>(source, first), panels);
}

template <Element From>
static constexpr Pack toF32() {
  return {From, Element::F32, packPanels<From, rhsToF32<From>>,
          packPanels<From, lhsToF32<From>>};
}

const Pack mp::runtime::gemm::kPortablePacks[] = {
    toF32<Element::F32>(),
    toF32<Element::BF16>(),
    toF32<Element::F16>(),
    {Element::BF16, Element::BF16, packPanels<Element::BF16, rhsOfBF16>,
     packPanels<Element::BF16, lhsOfBF16>},
};

const int mp::runtime::gemm::kPortablePackCount =
    sizeof kPortablePacks / sizeof *kPortablePacks;
