//===- Blocks.cpp - arrays in pieces that stay in the first cache ---------===//

#include "runtime/Update/Blocks.h"

#include <algorithm>
#include <cstring>

using namespace mpopt;
using namespace mpopt::update;

void mpopt::update::serialFor(int64_t count, Body body, void *context) {
  body(0, count, context);
}

std::vector<Chunk> mpopt::update::chunksOf(const std::vector<Tensor> &tensors) {
  std::vector<Chunk> chunks;
  for (size_t index = 0; index != tensors.size(); ++index) {
    const Tensor &tensor = tensors[index];
    if (!tensor.gradient)
      continue;
    for (size_t begin = 0; begin < tensor.size; begin += kChunk)
      chunks.push_back({index, begin, std::min(begin + kChunk, tensor.size)});
  }
  return chunks;
}

size_t mpopt::update::bytesOf(Format format) {
  return format == Format::F32 ? 4 : 2;
}

void *mpopt::update::elementOf(const Array &array, size_t index) {
  return static_cast<char *>(array.data) + index * bytesOf(array.format);
}

float *Block::load(const Kernels &kernels, const Array &array, size_t begin,
                   size_t n) {
  void *from = elementOf(array, begin);
  if (array.format == Format::F32)
    return static_cast<float *>(from);
  auto widen =
      array.format == Format::F16 ? kernels.widenF16 : kernels.widenBF16;
  widen(static_cast<const uint16_t *>(from), buffer, n);
  return buffer;
}

float *Block::loadSplit(const Kernels &kernels, const Array &weight,
                        const uint16_t *low, size_t begin, size_t n) {
  kernels.joinBF16(static_cast<const uint16_t *>(elementOf(weight, begin)),
                   low + begin, buffer, n);
  return buffer;
}

void mpopt::update::storeBlock(const Kernels &kernels, const float *values,
                               const Array &array, size_t begin, size_t n) {
  void *to = elementOf(array, begin);
  if (to == values)
    return;
  if (array.format == Format::F32) {
    std::memcpy(to, values, n * sizeof(float));
    return;
  }
  auto narrow =
      array.format == Format::F16 ? kernels.narrowF16 : kernels.narrowBF16;
  narrow(values, static_cast<uint16_t *>(to), n);
}
