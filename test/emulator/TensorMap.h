//===- TensorMap.h - a tensor map that the emulator can decode -*- C++ -*-===//
//
// Takes the place of a CUtensorMap, whose bits are not documented: same size
// and alignment, same meaning of the fields as cuTensorMapEncodeTiled has.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_TENSORMAP_H
#define TEST_EMULATOR_TENSORMAP_H

#include <cstdint>

namespace mlir::mp::emulator {

struct alignas(64) TensorMap {
  static constexpr uint64_t magicNumber = 0x70616d726f736e65;

  enum Swizzle : uint8_t { None = 0, B32 = 1, B64 = 2, B128 = 3 };

  uint64_t magic = magicNumber;
  void *base = nullptr;
  /// Elements, innermost dimension first.
  uint64_t sizes[5] = {1, 1, 1, 1, 1};
  /// Bytes from one index to the next in dimensions 1 to 4; dimension 0 is
  /// contiguous.
  uint64_t strides[4] = {0, 0, 0, 0};
  /// Elements that one copy moves, innermost dimension first.
  uint16_t box[5] = {1, 1, 1, 1, 1};
  uint8_t rank = 1;
  uint8_t elementBytes = 2;
  uint8_t swizzle = None;
  /// Elements outside the tensor are read as NaN instead of 0.
  uint8_t fillsNaN = 0;
};
static_assert(sizeof(TensorMap) == 128, "a CUtensorMap has 128 bytes");

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_TENSORMAP_H
