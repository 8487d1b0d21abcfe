//===- HopperOperations.cpp - the table of sm_90's operations -------------===//

#include "test/emulator/HopperOperations.h"
#include "test/emulator/Operations.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::mp::emulator;
using llvm::Twine;

void hopper::fault(const Call &call, FaultKind kind, const Twine &message) {
  call.machine.fault(kind, call.thread, call.site, message);
}

void Machine::waitUntil(const Call &call, llvm::function_ref<bool()> holds) {
  while (!holds())
    wait(call.thread, call.site);
}

/// What reads runs beside the threads too, and sees only what a fence has made
/// visible to it.
bool Machine::checkAsync(Thread &thread, const Stamp &stamp, char *address,
                         size_t bytes, uint32_t flags) {
  size_t offset = sharedOffset(address);
  auto report = [&](FaultKind kind, std::optional<Stamp> other = {}) {
    fault(kind, thread, stamp.site,
          Twine(bytes) + " bytes at " + Twine(offset) + " of shared memory",
          other);
  };
  if (!isSharedRange(address, bytes)) {
    report(FaultKind::OutOfBounds);
    return false;
  }
  bool isWrite = flags & Write;
  auto other = shadow.conflict(thread.clock, offset, bytes, isWrite,
                               /*isAtomic=*/false);
  if (other)
    report(other->agent < threads.size() ? FaultKind::Race
                                         : FaultKind::EarlyRead,
           other);
  if (other || isWrite)
    return true;
  if (auto writer = shadow.unfenced(thread.clock, threadCount(), offset, bytes))
    report(FaultKind::ProxyFence, writer);
  if (shadow.isUninitialized(offset, bytes))
    report(FaultKind::Uninitialized);
  return true;
}

void Machine::accessAsync(Thread &thread, const Stamp &stamp, char *address,
                          size_t bytes, uint32_t flags) {
  if (checkAsync(thread, stamp, address, bytes, flags))
    shadow.record(thread.clock, stamp, sharedOffset(address), bytes,
                  flags & Write, /*isAtomic=*/false);
}

/// The first lane of the mask.
static void elect(const Call &call) {
  call.machine.meet(call, call.argument<uint32_t>(0), [](const Meeting &all) {
    unsigned leader = 0;
    while (!all.has(leader))
      ++leader;
    for (unsigned lane = leader; lane < warpLanes; ++lane) {
      if (!all.has(lane))
        continue;
      all.setResult<uint32_t>(lane, 0, leader);
      all.setResult<uint8_t>(lane, 1, lane == leader);
    }
  });
}

template <unsigned Rank>
static void load(const Call &call) {
  hopper::loadBox(call, Rank);
}
template <unsigned Rank>
static void store(const Call &call) {
  hopper::storeBox(call, Rank);
}
template <unsigned Columns, bool IsBrain>
static void multiply(const Call &call) {
  hopper::multiply(call, Columns, IsBrain);
}

#define PRODUCTS(COLUMNS)                                                      \
  {"wgmma.m64n" #COLUMNS ".f16", multiply<COLUMNS, false>}, {                  \
    "wgmma.m64n" #COLUMNS ".bf16", multiply<COLUMNS, true>                     \
  }

llvm::ArrayRef<OperationRow> mlir::mp::emulator::hopperOperations() {
  static const OperationRow rows[] = {
      {"elect.sync", elect},
      {"mbarrier.init.shared", hopper::initialize},
      {"fence.mbarrier_init.release.cluster", hopper::fenceInitialization},
      {"mbarrier.arrive.shared", hopper::arrive},
      {"mbarrier.arrive.expect.tx.scope.cta.space.cta",
       hopper::arriveExpecting},
      {"mbarrier.wait.parity", hopper::waitForParity},
      {"cp.async.bulk.tensor.g2s.tile.2d", load<2>},
      {"cp.async.bulk.tensor.g2s.tile.3d", load<3>},
      {"cp.async.bulk.tensor.s2g.tile.2d", store<2>},
      {"cp.async.bulk.tensor.s2g.tile.3d", store<3>},
      {"cp.async.bulk.commit.group", hopper::commitStores},
      {"cp.async.bulk.wait.group.read", hopper::waitForStores},
      {"fence.proxy.async.shared_cta", hopper::fenceProxy},
      {"wgmma.fence.sync.aligned", hopper::fenceRegisters},
      {"wgmma.commit_group.sync.aligned", hopper::commitProducts},
      {"wgmma.wait_group.sync.aligned", hopper::waitForProducts},
      {"wgmma.read", hopper::readAccumulators},
      {"setmaxnreg.inc.sync.aligned.u32", hopper::setRegisters},
      {"setmaxnreg.dec.sync.aligned.u32", hopper::setRegisters},
      PRODUCTS(64),
      PRODUCTS(128),
      PRODUCTS(192),
      PRODUCTS(256),
  };
  return rows;
}
