//===- HopperMatrix.h - matrices in shared memory on sm_90 -------*- C++
//-*-===//
//
// Where TMA puts the elements of a box, and where wgmma looks for those of an
// operand. Both only compute; what an access means is the machine's.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_HOPPERMATRIX_H
#define TEST_EMULATOR_HOPPERMATRIX_H

#include "test/emulator/TensorMap.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace mlir::mp::emulator {

/// The 16-byte pieces of a row are exchanged by the number of the row in its
/// group of eight. `shared` is an address or an offset at a multiple of 1024.
inline uint64_t swizzle128(uint64_t shared) {
  return shared ^ (shared >> 7 & 7) << 4;
}

/// A piece of a box: up to 16 bytes at `shared` bytes behind the box's start,
/// of which the first `valid` are those at `global`.
struct BoxPiece {
  uint64_t shared;
  char *global;
  unsigned bytes, valid;
};

/// Calls `visit` for all pieces of the box at these coordinates.
void forEachPiece(const TensorMap &map, llvm::ArrayRef<int32_t> at,
                  llvm::function_ref<void(const BoxPiece &)> visit);

/// Bytes of a box in shared memory.
uint64_t boxBytes(const TensorMap &map);

/// Why TMA would not take the map or the coordinates; "" if it would.
std::string whyNotMap(const TensorMap &map, size_t coordinates);

/// A matrix descriptor of wgmma, taken apart. Offsets in bytes.
struct MatrixDescriptor {
  explicit MatrixDescriptor(uint64_t bits);

  /// Where the element stands (two bytes), in shared memory. `row` counts rows
  /// of lhs or columns of rhs.
  uint64_t offsetOf(unsigned row, unsigned k, bool isKMajor) const;

  uint64_t start, leading, stride;
  unsigned swizzle, base;
};

/// Why wgmma would not take it; "" if it would.
std::string whyNotDescriptor(const MatrixDescriptor &descriptor);

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_HOPPERMATRIX_H
