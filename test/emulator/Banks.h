//===- Banks.h - what shared memory takes for a warp's access --*- C++ -*-===//

#ifndef TEST_EMULATOR_BANKS_H
#define TEST_EMULATOR_BANKS_H

#include "test/emulator/Report.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <map>

namespace mlir::mp::emulator {

/// Where one lane accesses shared memory.
struct LaneAccess {
  uint64_t offset;
  unsigned bytes;
  unsigned lane = 0;
};

/// Adds one warp-wide access to `cost`: 32 banks of 4 bytes; 8 bytes a lane go
/// by half-warps, 16 bytes by quarters, in the order of `lanes`.
void addCost(llvm::ArrayRef<LaneAccess> lanes, AccessCost &cost);

/// Gathers the accesses of single lanes into those of warps: the n-th time that
/// each lane of a warp is at an instruction is one access.
class BankCounter {
public:
  explicit BankCounter(unsigned lanes) : lanes(lanes) {}

  void access(unsigned lane, uint32_t site, LaneAccess access,
              AccessCost &cost);
  /// Counts what not all lanes took part in.
  void flush(llvm::function_ref<AccessCost &(uint32_t site)> costOf);

private:
  struct Site {
    std::deque<llvm::SmallVector<LaneAccess, 32>> open;
    uint64_t closed = 0;
    uint64_t seen[32] = {};
  };

  unsigned lanes;
  std::map<uint32_t, Site> sites; ///< by instruction
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_BANKS_H
