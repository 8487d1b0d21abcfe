//===- HopperCopies.cpp - mbarrier and TMA --------------------------------===//

#include "test/emulator/Hopper.h"
#include "test/emulator/HopperOperations.h"
#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace mlir::mp::emulator;
using llvm::Twine;

void BulkCopy::load() const {
  forEachPiece(map, at, [&](const BoxPiece &piece) {
    if (piece.valid)
      std::memcpy(shared + piece.shared, piece.global, piece.valid);
    std::memset(shared + piece.shared + piece.valid, map.fillsNaN ? 0xff : 0,
                piece.bytes - piece.valid);
  });
}

void BulkCopy::store() const {
  forEachPiece(map, at, [&](const BoxPiece &piece) {
    if (piece.valid)
      std::memcpy(piece.global, shared + piece.shared, piece.valid);
  });
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void hopper::initialize(const Call &call) {
  char *address = call.argument<char *>(0);
  HopperState &state = call.machine.hopper();
  call.machine.access(call.thread, address, 8, 8, IsWrite, call.site);
  MBarrier barrier;
  barrier.number = unsigned(state.barriers.size());
  barrier.expected = barrier.pending = call.argument<uint32_t>(1);
  barrier.initializer = call.thread.id;
  state.barriers[call.machine.sharedOffset(address)] = std::move(barrier);
}

void hopper::fenceInitialization(const Call &call) {
  for (auto &[offset, barrier] : call.machine.hopper().barriers)
    if (barrier.initializer == call.thread.id)
      barrier.isFenced = true;
}

/// The barrier at an address; null, with a fault, if there is none.
static MBarrier *findBarrier(const Call &call, char *address) {
  auto &barriers = call.machine.hopper().barriers;
  auto found = call.machine.isShared(address)
                   ? barriers.find(call.machine.sharedOffset(address))
                   : barriers.end();
  if (found == barriers.end()) {
    call.fault(FaultKind::BadOperand, "there is no mbarrier at this address");
    return nullptr;
  }
  // Whoever initialized it must have met this thread since.
  call.machine.access(call.thread, address, 8, 8, IsAtomic | IsWrite,
                      call.site);
  return &found->second;
}

static Agent loadAgent(const Call &call, const MBarrier &barrier) {
  return Agent(5 * call.machine.threadCount() + barrier.number);
}

/// Ends the phase: the data are there.
static void complete(const Call &call, MBarrier &barrier) {
  for (const BulkCopy &copy : barrier.copies)
    copy.load();
  barrier.copies.clear();
  barrier.announced = barrier.started = 0;
  barrier.pending = barrier.expected;
  barrier.over = std::make_shared<const Times>(barrier.arriving);
  ++barrier.phase;
  call.machine.progressed();
}

static void arrive(const Call &call, MBarrier &barrier) {
  // A phase that nobody looked at may be over as well.
  if (barrier.isComplete())
    complete(call, barrier);
  if (barrier.pending == 0)
    return call.fault(FaultKind::BadOperand,
                      "more arrivals than the phase of the mbarrier expects");
  raise(barrier.arriving, call.thread.clock.known());
  call.thread.clock.advance();
  --barrier.pending;
  call.machine.progressed();
  if (barrier.pending == 0 && barrier.started > barrier.announced)
    call.fault(FaultKind::BadOperand,
               Twine(barrier.started) + " bytes are on their way, the phase " +
                   "was told of " + Twine(barrier.announced));
  if (barrier.isComplete() && barrier.copies.empty())
    complete(call, barrier);
}

void hopper::arrive(const Call &call) {
  if (MBarrier *barrier = findBarrier(call, call.argument<char *>(0)))
    ::arrive(call, *barrier);
}

void hopper::arriveExpecting(const Call &call) {
  MBarrier *barrier = findBarrier(call, call.argument<char *>(0));
  if (!barrier)
    return;
  if (barrier->isComplete())
    complete(call, *barrier);
  barrier->announced += call.argument<uint32_t>(1);
  ::arrive(call, *barrier);
}

void hopper::waitForParity(const Call &call) {
  MBarrier *barrier = findBarrier(call, call.argument<char *>(0));
  if (!barrier)
    return;
  uint32_t parity = call.argument<uint32_t>(1);
  call.machine.waitUntil(call, [&] {
    if (!barrier->hasCompleted(parity) && barrier->isComplete())
      complete(call, *barrier);
    return barrier->hasCompleted(parity);
  });
  if (!barrier->over)
    return;
  Clock &clock = call.thread.clock;
  clock.learn(barrier->over);
  clock.learn(loadAgent(call, *barrier), barrier->phase);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Takes the map and its coordinates; false, with a fault, if they are wrong.
static bool takeCopy(const Call &call, BulkCopy &copy, char *shared, unsigned map,
                     unsigned rank) {
  copy.shared = shared;
  copy.map = *call.argument<const TensorMap *>(map);
  for (unsigned i = 0; i < rank; ++i)
    copy.at.push_back(call.argument<int32_t>(map + 1 + i));
  std::string why = whyNotMap(copy.map, rank);
  uint64_t bytes = why.empty() ? boxBytes(copy.map) : 0;
  Machine &machine = call.machine;
  if (why.empty() && !machine.isSharedRange(shared, bytes))
    why = "the box does not lie in shared memory";
  unsigned unit = copy.map.swizzle ? 1024 : 128;
  if (why.empty() && machine.sharedOffset(shared) % unit)
    why = "the box does not start at a multiple of " + std::to_string(unit);
  if (!why.empty())
    call.fault(FaultKind::BadOperand, why);
  return why.empty();
}

void hopper::loadBox(const Call &call, unsigned rank) {
  Machine &machine = call.machine;
  MBarrier *barrier = findBarrier(call, call.argument<char *>(1));
  BulkCopy copy;
  // The map and its coordinates follow the barrier.
  if (!barrier || !takeCopy(call, copy, call.argument<char *>(0), 2, rank))
    return;
  if (!barrier->isFenced)
    call.fault(FaultKind::ProxyFence,
               "the mbarrier was initialized, and no fence lets copies see it");
  if (barrier->isComplete())
    complete(call, *barrier);
  Stamp stamp{loadAgent(call, *barrier), barrier->phase + 1, call.site};
  forEachPiece(copy.map, copy.at, [&](const BoxPiece &piece) {
    if (piece.valid)
      machine.access(call.thread, piece.global, piece.valid, 1, 0, call.site);
    machine.accessAsync(call.thread, stamp, copy.shared + piece.shared,
                        piece.bytes, IsWrite);
  });
  barrier->started += boxBytes(copy.map);
  if (!machine.isLate())
    copy.load();
  barrier->copies.push_back(std::move(copy));
  machine.progressed();
}

void hopper::storeBox(const Call &call, unsigned rank) {
  Machine &machine = call.machine;
  BulkCopy copy;
  if (!takeCopy(call, copy, call.argument<char *>(0), 1, rank))
    return;
  BulkStores &stores = machine.hopper().stores[call.thread.id];
  Stamp stamp{Agent(3 * machine.threadCount() + call.thread.id),
              stores.committed + 1, call.site};
  forEachPiece(copy.map, copy.at, [&](const BoxPiece &piece) {
    machine.accessAsync(call.thread, stamp, copy.shared + piece.shared,
                        piece.bytes, 0);
    if (piece.valid)
      machine.access(call.thread, piece.global, piece.valid, 1, IsWrite,
                     call.site);
  });
  if (!machine.isLate())
    copy.store();
  stores.open.push_back(std::move(copy));
}

void hopper::commitStores(const Call &call) {
  BulkStores &stores = call.machine.hopper().stores[call.thread.id];
  stores.groups.push_back(std::move(stores.open));
  stores.open.clear();
  ++stores.committed;
}

void hopper::waitForStores(const Call &call) {
  BulkStores &stores = call.machine.hopper().stores[call.thread.id];
  while (stores.groups.size() > call.argument<uint32_t>(0)) {
    if (call.machine.isLate())
      for (const BulkCopy &copy : stores.groups.front())
        copy.store();
    stores.groups.pop_front();
    ++stores.done;
  }
  call.thread.clock.learn(
      Agent(3 * call.machine.threadCount() + call.thread.id), stores.done);
}

void hopper::endOfThread(Machine &machine, Thread &thread) {
  auto found = machine.hopper().stores.find(thread.id);
  if (found == machine.hopper().stores.end())
    return;
  if (!found->second.open.empty() || !found->second.groups.empty())
    machine.fault(FaultKind::EarlyRead, thread, thread.site,
                  "the thread ends before its bulk stores have read their "
                  "data");
}
