//===- TensorMaps.cpp - matrices for the tensor memory accelerator --------===//

#include "runtime/CUDA/TensorMaps.h"

using namespace mp::runtime;
using namespace mp::runtime::cuda;

/// Values of cuda.h: CUtensorMapDataType, CUtensorMapSwizzle and
/// CUtensorMapL2promotion. No interleaving; what is outside reads as zero.
static constexpr int kF16 = 6, kF32 = 7, kBF16 = 9;
static constexpr int kSwizzle128 = 3, kPromote128 = 2;
static constexpr int kNoInterleave = 0, kFillZero = 0;
static constexpr int32_t kMaxRank = 3;

static int dataTypeOf(TensorMap::Element element) {
  switch (element) {
  case TensorMap::Element::F16:
    return kF16;
  case TensorMap::Element::BF16:
    return kBF16;
  case TensorMap::Element::F32:
    return kF32;
  }
  return kF32;
}

bool cuda::encode(const Driver &driver, const TensorMap &map, void *address,
                  const int64_t *sizes, EncodedMap &encoded,
                  std::string &error) {
  if (!driver.encodeTiled || map.rank < 1 || map.rank > kMaxRank) {
    error = "the CUDA driver has no tensor maps; update the NVIDIA driver";
    return false;
  }
  uint64_t extents[kMaxRank], strides[kMaxRank];
  const uint32_t steps[kMaxRank] = {1, 1, 1};
  auto stride = uint64_t(map.elementBytes());
  for (int32_t i = 0; i != map.rank; ++i) {
    extents[i] = uint64_t(map.extents[i].value(sizes));
    stride *= extents[i];
    strides[i] = stride; // of the next dimension
  }
  Result result =
      driver.encodeTiled(&encoded, dataTypeOf(map.element), uint32_t(map.rank),
                         address, extents, strides, map.box, steps,
                         kNoInterleave, kSwizzle128, kPromote128, kFillZero);
  return driver.check(result, "cuTensorMapEncodeTiled", error);
}
