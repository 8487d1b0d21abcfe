//===- Clocks.h - what is ordered before what ------------------*- C++ -*-===//
//
// Vector clocks. An *agent* is whatever accesses memory in an order of its own:
// a thread, the cp.async groups of a thread, the bulk copies that one mbarrier
// counts, the wgmma groups of a warpgroup. An access carries its agent and the
// agent's time; thread T has the access behind it if T's clock knows that time.
//
// Agents of a block with N threads:
//   [0, N)     threads; time: releases (barriers, arrivals) done so far
//   [N, 2N)    cp.async groups of thread a - N; time: number of the group
//   [2N, 3N)   proxy fences: the part of thread a - 2N that the asynchronous
//              proxy may see
//   [3N, 4N)   bulk groups (stores) of thread a - 3N
//   [4N, 5N)   wgmma groups that thread a - 4N started
//   [5N, ...)  bulk copies into shared memory, one agent for each mbarrier
//
// Clocks share their storage: after a barrier all threads have the same one,
// and differ only in what they know of themselves.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_CLOCKS_H
#define TEST_EMULATOR_CLOCKS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::mp::emulator {

using Agent = uint32_t;
using Time = uint32_t;
using Times = std::vector<Time>;

/// Raises each entry of `into` to that of `from`.
void raise(Times &into, const Times &from);

/// The clock of one thread.
class Clock {
public:
  void reset(unsigned thread, unsigned threads,
             std::shared_ptr<const Times> zero);

  bool knows(Agent agent, Time time) const {
    if (agent == self)
      return true;
    if (agent == self + threads)
      return copiesDone >= time;
    return agent < shared->size() && (*shared)[agent] >= time;
  }
  /// The time of an access that this thread makes now.
  Time now() const { return own; }

  /// All that this thread knows, as others will learn it.
  Times known() const;
  /// Later accesses are after what others have learnt.
  void advance() { ++own; }
  void learn(const std::shared_ptr<const Times> &times);
  /// This thread has waited for `agent` up to `time`.
  void learn(Agent agent, Time time);
  /// All that is ordered before now may be seen by the asynchronous proxy.
  void fenceProxy();

  /// All the threads learn what any of them knows.
  static void meet(llvm::ArrayRef<Clock *> clocks);

private:
  void putOwn(Times &times) const;

  unsigned self = 0, threads = 0;
  Time own = 1, copiesDone = 0;
  std::shared_ptr<const Times> shared;
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_CLOCKS_H
