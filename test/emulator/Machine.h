//===- Machine.h - one block of threads, running ---------------*- C++ -*-===//
//
// Runs the threads of a block in turn on one host thread. A thread pauses only
// where it waits for others: at barriers and at operations of a whole warp.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_MACHINE_H
#define TEST_EMULATOR_MACHINE_H

#include "test/emulator/Banks.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Fiber.h"
#include "test/emulator/Hopper.h"
#include "test/emulator/Retarget.h"
#include "test/emulator/Shadow.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <optional>

namespace mlir::mp::emulator {

class Machine;

inline constexpr unsigned warpLanes = 32;

/// An asynchronous copy of up to 16 bytes: `valid` of them from `source`, the
/// rest are zeros.
struct AsyncCopy {
  char *destination;
  const char *source;
  unsigned bytes, valid;
};

/// A thread: where it is, and what it waits for.
struct Thread {
  unsigned id = 0;
  Dim3 index;
  Fiber fiber;
  Clock clock;
  bool isDone = false;
  /// The instruction that it waits at, and whether for lanes of its warp.
  uint32_t site = 0;
  bool waitsForLanes = false;
  std::vector<AsyncCopy> openCopies;
  std::deque<std::vector<AsyncCopy>> groups; ///< committed, not waited for
  Time groupsCommitted = 0, groupsDone = 0;
};

/// The lanes of a warp at one operation that they do together. `lanes` has one
/// entry for each lane of the warp; those outside `mask` are null.
struct Meeting {
  uint32_t mask = 0, arrived = 0;
  bool isOver = false;
  const char *arguments[warpLanes] = {};
  char *results[warpLanes] = {};

  bool has(unsigned lane) const { return mask >> lane & 1; }
  template <typename T>
  T argument(unsigned lane, unsigned i) const {
    T value;
    std::memcpy(static_cast<void *>(&value), arguments[lane] + i * slotBytes,
                sizeof value);
    return value;
  }
  template <typename T>
  void setResult(unsigned lane, unsigned i, T value) const {
    std::memcpy(results[lane] + i * slotBytes,
                static_cast<const void *>(&value), sizeof value);
  }
};

/// An operation, as one thread does it.
struct Call {
  Machine &machine;
  Thread &thread;
  uint32_t site;
  const char *arguments;
  char *results;

  template <typename T>
  T argument(unsigned i) const {
    T value;
    std::memcpy(static_cast<void *>(&value), arguments + i * slotBytes,
                sizeof value);
    return value;
  }
  template <typename T>
  void setResult(T value, unsigned i = 0) const {
    std::memcpy(results + i * slotBytes, static_cast<const void *>(&value),
                sizeof value);
  }
};

/// What an operation does. Null for a name that the emulator does not know.
using Operation = void (*)(const Call &call);
Operation findOperation(llvm::StringRef name);

class Machine {
public:
  Machine(const Retargeted &code, void (*entry)(char **), char *shared,
          size_t sharedCapacity);

  Report run(const Launch &launch, Copies copies);

  // For operations. All take the thread that does them.

  const Dim3 &gridSize() const { return launch->grid; }
  const Dim3 &blockSize() const { return launch->block; }
  const Dim3 &blockIndex() const { return block; }

  /// Lets the lanes of `mask` meet at `site`; the last one does `together` for
  /// all of them.
  void meet(const Call &call, uint32_t mask,
            llvm::function_ref<void(const Meeting &)> together);
  /// Lanes of the warp that have not ended.
  uint32_t liveLanes(const Thread &thread) const;
  Thread &laneOf(const Thread &thread, unsigned lane) {
    return threads[thread.id / warpLanes * warpLanes + lane];
  }
  /// Waits until `expected` threads are at barrier `id`; 0 stands for all.
  void barrier(const Call &call, uint32_t id, uint32_t expected);

  void copyAsync(const Call &call, const AsyncCopy &copy);
  void commitCopies(Thread &thread);
  void waitForCopies(Thread &thread, Time pending);

  /// Checks an access and returns the address to use instead.
  char *access(Thread &thread, char *address, size_t bytes, size_t align,
               uint32_t flags, uint32_t site, bool countsBanks = true);
  /// Counts a warp-wide operation, or one of a thread.
  void count(llvm::StringRef name) { ++report.counts[name.str()]; }
  /// Adds a warp's access to the costs of an instruction.
  void addBankCost(uint32_t site, llvm::ArrayRef<LaneAccess> lanes,
                   bool isWrite);
  bool isShared(const char *address) const {
    return address >= shared && address < shared + sharedCapacity;
  }
  size_t sharedOffset(const char *address) const {
    return size_t(address - shared);
  }
  void fault(FaultKind kind, const Thread &thread, uint32_t site,
             const llvm::Twine &message, std::optional<Stamp> other = {});

  // For what goes on beside the threads (HopperOperations.h).

  HopperState &hopper() { return hopperState; }
  bool isLate() const { return copies == Copies::Late; }
  unsigned threadCount() const { return unsigned(threads.size()); }
  Thread &threadAt(unsigned id) { return threads[id]; }
  char *sharedBase() const { return shared; }
  bool isSharedRange(const char *address, uint64_t bytes) const {
    return isShared(address) && sharedOffset(address) + bytes <= sharedBytes;
  }
  /// Checks an access by the agent of `stamp`, as far as `thread` must know of
  /// what was before; false if it is outside.
  bool checkAsync(Thread &thread, const Stamp &stamp, char *address,
                  size_t bytes, uint32_t flags);
  /// Checks and remembers it.
  void accessAsync(Thread &thread, const Stamp &stamp, char *address,
                   size_t bytes, uint32_t flags);
  /// Lets other threads run until the condition holds.
  void waitUntil(const Call &call, llvm::function_ref<bool()> holds);
  /// Something has changed that others may wait for.
  void progressed() { ++progress; }

  void runOperation(uint32_t operation, uint32_t site, const char *arguments,
                    char *results);
  char *runAccess(char *address, uint32_t bytes, uint32_t align, uint32_t flags,
                  uint32_t site);

private:
  /// A buffer of the launch.
  struct Region {
    char *begin, *end;
    bool isWritable;
    std::string name;
  };
  struct Barrier {
    uint32_t arrived = 0;
    uint32_t expected = 0; ///< 0: all threads that have not ended
    uint64_t generation = 0;
    llvm::SmallVector<Thread *> waiting;
  };
  struct Warp {
    std::map<uint32_t, std::shared_ptr<Meeting>> open; ///< by instruction
    BankCounter banks{warpLanes};
  };

  bool checkLaunch();
  void registerBuffers();
  void bindArguments();
  void prepareBlock();
  void runBlock();
  void runThreads();
  static void runThread(void *context);
  void reportDeadlock();
  void endOfThread(Thread &thread);
  void wait(Thread &thread, uint32_t site);
  void accessShared(Thread &thread, char *address, size_t bytes, uint32_t flags,
                    uint32_t site, bool countsBanks);
  bool accessGlobal(Thread &thread, char *address, size_t bytes, uint32_t flags,
                    uint32_t site);
  AccessCost &costOf(uint32_t site, bool isWrite);
  Agent copyAgent(const Thread &thread) const {
    return Agent(threads.size()) + thread.id;
  }
  Dim3 threadOf(const Stamp &stamp) const;
  bool isOpenCopy(const Stamp &stamp) const;
  static void move(const AsyncCopy &copy);
  void releaseBarrier(Barrier &barrier);

  const Retargeted &code;
  void (*entry)(char **);
  char *shared;
  size_t sharedCapacity;
  std::vector<Operation> operations;

  const Launch *launch = nullptr;
  Copies copies = Copies::Late;
  Report report;
  std::vector<Region> regions;
  std::vector<std::vector<char>> values;
  std::vector<char *> argumentAddresses;

  Dim3 block;
  size_t sharedBytes = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::map<uint32_t, Barrier> barriers;
  Stacks stacks;
  Shadow shadow;
  HopperState hopperState;
  Thread *current = nullptr;
  uint64_t progress = 0;
  size_t live = 0;
  std::map<uint32_t, AccessCost> costs;
  std::map<std::tuple<int, uint32_t, uint32_t>, size_t> seenFaults;
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> scrap; ///< where forbidden accesses go
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_MACHINE_H
