//===- Shadow.h - who accessed which bytes of shared memory ----*- C++ -*-===//
//
// For each granule of shared memory: the last write, and the reads since that
// no later read is known to come after; as agents with their times (Clocks.h).
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_SHADOW_H
#define TEST_EMULATOR_SHADOW_H

#include "test/emulator/Clocks.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::mp::emulator {

/// An access: who, when, and at which instruction.
struct Stamp {
  Agent agent = 0;
  Time time = 0;
  uint32_t site = 0;
};

class Shadow {
public:
  /// Bytes of a granule: accesses to one granule are taken for accesses to the
  /// same bytes.
  static constexpr size_t granuleBytes = 2;

  void reset(size_t bytes) {
    granules.assign((bytes + granuleBytes - 1) / granuleBytes, Granule());
  }
  size_t bytes() const { return granules.size() * granuleBytes; }

  /// What an access at [offset, offset + size) conflicts with: an earlier
  /// access that `clock` does not know to be over. Atomic accesses do not
  /// conflict with each other.
  std::optional<Stamp> conflict(const Clock &clock, size_t offset, size_t size,
                                bool isWrite, bool isAtomic) const;
  /// Whether a byte of it was never written.
  bool isUninitialized(size_t offset, size_t size) const;
  /// `clock` is that of the thread behind the access.
  void record(const Clock &clock, const Stamp &stamp, size_t offset,
              size_t size, bool isWrite, bool isAtomic);

private:
  struct Granule {
    Stamp writer;
    llvm::SmallVector<Stamp, 1> readers;
    bool isWritten = false, isAtomic = false;
  };
  static size_t first(size_t offset) { return offset / granuleBytes; }
  static size_t last(size_t offset, size_t size) {
    return (offset + size - 1) / granuleBytes;
  }

  std::vector<Granule> granules;
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_SHADOW_H
