//===- Hopper.h - the asynchronous operations of sm_90 ---------*- C++ -*-===//
//
// mbarrier, TMA and wgmma. A copy or product is an agent of its own (Clocks.h):
// what it reads and writes is ordered only by the wait for it. So an access to
// a stage whose copy has not been waited for, or a copy to a stage that
// products still read, conflicts, whatever the order in which the emulator
// happens to run the threads.
//
// Late copies move their data when a thread finds their phase complete (bulk
// loads) or waits for their group (bulk stores).
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_HOPPER_H
#define TEST_EMULATOR_HOPPER_H

#include "test/emulator/Clocks.h"
#include "test/emulator/HopperMatrix.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <map>

namespace mlir::mp::emulator {

inline constexpr unsigned warpgroupThreads = 128;

/// A box on its way between global and shared memory.
struct BulkCopy {
  TensorMap map;
  llvm::SmallVector<int32_t, 5> at;
  char *shared;

  void load() const;
  void store() const;
};

/// A barrier in shared memory.
struct MBarrier {
  /// Its number among the agents for bulk loads.
  unsigned number = 0;
  uint32_t expected = 0, pending = 0;
  /// Phases that are over.
  uint32_t phase = 0;
  /// Bytes that the current phase has been told of, and those of its copies.
  int64_t announced = 0, started = 0;
  std::vector<BulkCopy> copies;
  /// What the arrivals of the current phase have ordered, and those of phases
  /// that are over.
  Times arriving;
  std::shared_ptr<const Times> over;
  /// Whether copies may use it: its initialization has been fenced.
  bool isFenced = false;
  unsigned initializer = 0;

  bool isComplete() const { return pending == 0 && started == announced; }
  bool hasCompleted(uint32_t parity) const { return (phase & 1) != parity; }
};

/// The wgmma groups of 128 threads.
struct Warpgroup {
  // Threads at the operation that they do together.
  unsigned arrived = 0;
  uint64_t generation = 0;
  uint32_t site = 0;
  const char *arguments[warpgroupThreads] = {};
  char *results[warpgroupThreads] = {};

  Time committed = 0, done = 0;
  bool hasOpen = false; ///< Products that no group holds yet.
  bool isFenced = false;
};

/// The bulk stores of one thread.
struct BulkStores {
  std::vector<BulkCopy> open;
  std::deque<std::vector<BulkCopy>> groups;
  Time committed = 0, done = 0;
};

/// What a block has of all this.
struct HopperState {
  std::map<size_t, MBarrier> barriers; ///< By offset in shared memory.
  std::map<unsigned, Warpgroup> warpgroups;
  std::map<unsigned, BulkStores> stores; ///< By thread.
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_HOPPER_H
