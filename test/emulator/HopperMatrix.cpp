//===- HopperMatrix.cpp - matrices in shared memory on sm_90 --------------===//

#include "test/emulator/HopperMatrix.h"
#include <algorithm>
#include <string>

using namespace mlir::mp::emulator;

static constexpr unsigned kPiece = 16, kRow = 128;

static uint64_t rowBytes(const TensorMap &map) {
  return uint64_t(map.box[0]) * map.elementBytes;
}

uint64_t mlir::mp::emulator::boxBytes(const TensorMap &map) {
  uint64_t bytes = rowBytes(map);
  for (unsigned d = 1; d < map.rank; ++d)
    bytes *= map.box[d];
  return bytes;
}

std::string mlir::mp::emulator::whyNotMap(const TensorMap &map,
                                          size_t coordinates) {
  if (map.magic != TensorMap::magicNumber)
    return "the address is not that of a tensor map";
  if (coordinates != map.rank)
    return "the map has another rank";
  if (uintptr_t(map.base) % kPiece)
    return "the tensor does not start at a multiple of 16 bytes";
  for (unsigned d = 0; d + 1 < map.rank; ++d)
    if (map.strides[d] % kPiece)
      return "a stride is no multiple of 16 bytes";
  for (unsigned d = 0; d < map.rank; ++d)
    if (map.sizes[d] == 0 || map.box[d] == 0 || map.box[d] > 256)
      return "an extent is zero, or one of the box above 256";
  if (map.swizzle != TensorMap::B128 && map.swizzle != TensorMap::None)
    return "only the 128-byte swizzle is modelled";
  if (map.swizzle == TensorMap::B128 && rowBytes(map) != kRow)
    return "a row of a swizzled box has not 128 bytes";
  if (rowBytes(map) % kPiece)
    return "a row of the box is no multiple of 16 bytes";
  return "";
}

/// One row of the box: pieces of 16 bytes. `row` is its number, `global` its
/// first element, null if it lies outside.
static void visitRow(const TensorMap &map, uint64_t row, char *global,
                     int64_t first,
                     llvm::function_ref<void(const BoxPiece &)> visit) {
  int64_t bytes = map.elementBytes;
  int64_t end = int64_t(map.sizes[0]) * bytes;
  for (uint64_t i = 0; i < rowBytes(map); i += kPiece) {
    int64_t at = first * bytes + int64_t(i);
    int64_t valid =
        global && at >= 0 ? std::clamp<int64_t>(end - at, 0, kPiece) : 0;
    uint64_t shared = row * rowBytes(map) + i;
    if (map.swizzle == TensorMap::B128)
      shared = swizzle128(shared);
    visit({shared, valid ? global + at : nullptr, kPiece, unsigned(valid)});
  }
}

void mlir::mp::emulator::forEachPiece(
    const TensorMap &map, llvm::ArrayRef<int32_t> at,
    llvm::function_ref<void(const BoxPiece &)> visit) {
  uint64_t rows = boxBytes(map) / rowBytes(map);
  for (uint64_t row = 0; row < rows; ++row) {
    auto *global = static_cast<char *>(map.base);
    bool isInside = true;
    uint64_t rest = row;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t index = at[d] + int64_t(rest % map.box[d]);
      rest /= map.box[d];
      isInside &= index >= 0 && index < int64_t(map.sizes[d]);
      if (isInside)
        global += index * map.strides[d - 1];
    }
    visitRow(map, row, isInside ? global : nullptr, at[0], visit);
  }
}

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
      stride((bits >> 32 & 0x3fff) << 4), swizzle(bits >> 62),
      base(bits >> 49 & 7) {}

uint64_t MatrixDescriptor::offsetOf(unsigned row, unsigned k,
                                    bool isKMajor) const {
  // Eight swizzled rows of 128 bytes are one atom. With k inside, a row of the
  // atom is one of the matrix, else it is one position along k.
  unsigned inside = isKMajor ? k : row % 64, line = isKMajor ? row : k;
  uint64_t offset =
      start + line / 8 * stride + line % 8 * kRow + uint64_t(inside) * 2;
  if (!isKMajor)
    offset += row / 64 * leading;
  return swizzle128(offset);
}

std::string
mlir::mp::emulator::whyNotDescriptor(const MatrixDescriptor &descriptor) {
  if (descriptor.swizzle != 1)
    return "only the 128-byte swizzle is modelled";
  if (descriptor.base != 0)
    return "a base offset is not modelled";
  if (descriptor.start >> 7 & 7)
    return "the matrix does not start at a multiple of 1024 bytes";
  return "";
}
