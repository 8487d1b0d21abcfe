//===- Operations.cpp - indices, barriers, exchange within a warp ---------===//

#include "test/emulator/Operations.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"

using namespace mlir::mp::emulator;
using llvm::StringRef;

Operation mlir::mp::emulator::findOperation(StringRef name) {
  static const llvm::StringMap<Operation> all = [] {
    llvm::StringMap<Operation> map;
    for (auto rows : {threadOperations(), copyOperations(), matrixOperations(),
                      numberOperations(), hopperOperations()})
      for (const OperationRow &row : rows)
        map[row.name] = row.run;
    return map;
  }();
  return all.lookup(name);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

template <unsigned Dim3::*Field>
static void threadIndex(const Call &call) {
  call.setResult<uint32_t>(call.thread.index.*Field);
}
template <unsigned Dim3::*Field>
static void blockIndex(const Call &call) {
  call.setResult<uint32_t>(call.machine.blockIndex().*Field);
}
template <unsigned Dim3::*Field>
static void blockSize(const Call &call) {
  call.setResult<uint32_t>(call.machine.blockSize().*Field);
}
template <unsigned Dim3::*Field>
static void gridSize(const Call &call) {
  call.setResult<uint32_t>(call.machine.gridSize().*Field);
}
static void laneIndex(const Call &call) {
  call.setResult<uint32_t>(call.thread.id % warpLanes);
}
static void warpIndex(const Call &call) {
  call.setResult<uint32_t>(call.thread.id / warpLanes);
}
static void warpSize(const Call &call) { call.setResult<uint32_t>(warpLanes); }

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

static void barrierOfAll(const Call &call) {
  call.machine.count("barrier");
  call.machine.barrier(call, call.argument<uint32_t>(0), 0);
}

static void barrierOfSome(const Call &call) {
  call.machine.count("barrier");
  call.machine.barrier(call, call.argument<uint32_t>(0),
                       call.argument<uint32_t>(1));
}

/// bar.warp.sync orders the memory accesses of its lanes.
static void syncWarp(const Call &call) {
  Machine &machine = call.machine;
  Thread &thread = call.thread;
  machine.meet(call, call.argument<uint32_t>(0), [&](const Meeting &meeting) {
    machine.count("bar.warp.sync");
    llvm::SmallVector<Clock *, warpLanes> clocks;
    for (unsigned lane = 0; lane != warpLanes; ++lane)
      if (meeting.has(lane))
        clocks.push_back(&machine.laneOf(thread, lane).clock);
    Clock::meet(clocks);
  });
}

/// Threads run one after the other, so that a fence finds all writes done; what
/// it orders is not modelled.
static void fence(const Call &) {}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

/// The lane that `lane` reads from; PTX ISA, shfl.sync. `c` holds the clamp and
/// the segment mask.
using Source = int (*)(int lane, int b, int most, int least);

static int sourceDown(int lane, int b, int, int) { return lane + b; }
static int sourceUp(int lane, int b, int, int) { return lane - b; }
static int sourceBfly(int lane, int b, int, int) { return lane ^ b; }
static int sourceIdx(int, int b, int most, int least) {
  return least | (b & ~most & 31) | (b & most & 31 & ~least);
}

/// Arguments: mask, value, b, c. Results: the value, and whether the source was
/// in range.
template <Source From, bool IsUp, bool HasPredicate>
static void shuffle(const Call &call) {
  Machine &machine = call.machine;
  machine.meet(call, call.argument<uint32_t>(0), [&](const Meeting &meeting) {
    machine.count("shfl.sync");
    for (unsigned lane = 0; lane != warpLanes; ++lane) {
      if (!meeting.has(lane))
        continue;
      int b = meeting.argument<int>(lane, 2) & 31;
      int c = meeting.argument<int>(lane, 3);
      int segment = c >> 8 & 31, clamp = c & 31;
      int least = int(lane) & segment;
      int most = least | (clamp & ~segment);
      int from = From == sourceIdx ? (least | (b & ~segment))
                                   : From(int(lane), b, most, least);
      bool inRange = IsUp ? from >= most : from <= most && from >= 0;
      if (!inRange)
        from = int(lane);
      if (!meeting.has(unsigned(from)))
        machine.fault(FaultKind::MissingLane, machine.laneOf(call.thread, lane),
                      call.site,
                      "reads from lane " + llvm::Twine(from) +
                          ", which does not take part");
      else
        meeting.setResult(lane, 0,
                          meeting.argument<uint32_t>(unsigned(from), 1));
      if (HasPredicate)
        meeting.setResult<uint8_t>(lane, 1, inRange);
    }
  });
}

/// The lanes of `mask` whose predicate holds.
static uint32_t ballotOf(const Meeting &meeting) {
  uint32_t ballot = 0;
  for (unsigned lane = 0; lane != warpLanes; ++lane)
    if (meeting.has(lane) && (meeting.argument<uint8_t>(lane, 1) & 1))
      ballot |= uint32_t(1) << lane;
  return ballot;
}

template <typename T, T (*Of)(uint32_t ballot, uint32_t mask)>
static void vote(const Call &call) {
  Machine &machine = call.machine;
  machine.meet(call, call.argument<uint32_t>(0), [&](const Meeting &meeting) {
    machine.count("vote.sync");
    T value = Of(ballotOf(meeting), meeting.mask);
    for (unsigned lane = 0; lane != warpLanes; ++lane)
      if (meeting.has(lane))
        meeting.setResult<T>(lane, 0, value);
  });
}
static uint8_t anyOf(uint32_t ballot, uint32_t) { return ballot != 0; }
static uint8_t allOf(uint32_t ballot, uint32_t mask) { return ballot == mask; }
static uint32_t asBits(uint32_t ballot, uint32_t) { return ballot; }

template <typename T, T (*Join)(T, T)>
static void reduce(const Call &call) {
  Machine &machine = call.machine;
  machine.meet(call, call.argument<uint32_t>(1), [&](const Meeting &meeting) {
    machine.count("redux.sync");
    std::optional<T> sum;
    for (unsigned lane = 0; lane != warpLanes; ++lane)
      if (meeting.has(lane)) {
        T value = meeting.argument<T>(lane, 0);
        sum = sum ? Join(*sum, value) : value;
      }
    for (unsigned lane = 0; lane != warpLanes; ++lane)
      if (meeting.has(lane))
        meeting.setResult<T>(lane, 0, *sum);
  });
}
template <typename T>
static T sumOf(T a, T b) {
  return a + b;
}
template <typename T>
static T largest(T a, T b) {
  return std::max(a, b);
}
template <typename T>
static T smallest(T a, T b) {
  return std::min(a, b);
}
static uint32_t bothBits(uint32_t a, uint32_t b) { return a & b; }
static uint32_t eitherBit(uint32_t a, uint32_t b) { return a | b; }

#define SHUFFLES(NAME, SOURCE, IS_UP)                                          \
  {"shfl.sync." NAME ".i32", shuffle<SOURCE, IS_UP, false>},                   \
      {"shfl.sync." NAME ".f32", shuffle<SOURCE, IS_UP, false>},               \
      {"shfl.sync." NAME ".i32p", shuffle<SOURCE, IS_UP, true>}, {             \
    "shfl.sync." NAME ".f32p", shuffle<SOURCE, IS_UP, true>                    \
  }
// A template is no expression that parentheses could enclose.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define INDICES(NAME, FUNCTION)                                                \
  {"read.ptx.sreg." NAME ".x", FUNCTION<&Dim3::x>},                            \
      {"read.ptx.sreg." NAME ".y", FUNCTION<&Dim3::y>}, {                      \
    "read.ptx.sreg." NAME ".z", FUNCTION<&Dim3::z>                             \
  }
// NOLINTEND(bugprone-macro-parentheses)

llvm::ArrayRef<OperationRow> mlir::mp::emulator::threadOperations() {
  static const OperationRow rows[] = {
      INDICES("tid", threadIndex),
      INDICES("ctaid", blockIndex),
      INDICES("ntid", blockSize),
      INDICES("nctaid", gridSize),
      {"read.ptx.sreg.laneid", laneIndex},
      {"read.ptx.sreg.warpid", warpIndex},
      {"read.ptx.sreg.warpsize", warpSize},
      {"barrier.cta.sync.aligned.all", barrierOfAll},
      {"barrier.cta.sync.all", barrierOfAll},
      {"barrier.cta.sync.aligned.count", barrierOfSome},
      {"barrier.cta.sync.count", barrierOfSome},
      {"barrier0", [](const Call &call) { call.machine.barrier(call, 0, 0); }},
      {"bar.warp.sync", syncWarp},
      {"membar.cta", fence},
      {"membar.gl", fence},
      {"membar.sys", fence},
      SHUFFLES("down", sourceDown, false),
      SHUFFLES("up", sourceUp, true),
      SHUFFLES("bfly", sourceBfly, false),
      SHUFFLES("idx", sourceIdx, false),
      {"vote.any.sync", vote<uint8_t, anyOf>},
      {"vote.all.sync", vote<uint8_t, allOf>},
      {"vote.ballot.sync", vote<uint32_t, asBits>},
      {"redux.sync.add", reduce<uint32_t, sumOf<uint32_t>>},
      {"redux.sync.umax", reduce<uint32_t, largest<uint32_t>>},
      {"redux.sync.umin", reduce<uint32_t, smallest<uint32_t>>},
      {"redux.sync.max", reduce<int32_t, largest<int32_t>>},
      {"redux.sync.min", reduce<int32_t, smallest<int32_t>>},
      {"redux.sync.and", reduce<uint32_t, bothBits>},
      {"redux.sync.or", reduce<uint32_t, eitherBit>},
  };
  return rows;
}
