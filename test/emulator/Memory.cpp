//===- Memory.cpp - accesses of threads and of copies ---------------------===//

#include "test/emulator/Machine.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::mp::emulator;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

AccessCost &Machine::costOf(uint32_t site, bool isWrite) {
  AccessCost &cost = costs[site];
  if (cost.location.empty()) {
    cost.location = code.sites[site];
    cost.isWrite = isWrite;
  }
  return cost;
}

void Machine::addBankCost(uint32_t site, llvm::ArrayRef<LaneAccess> lanes,
                          bool isWrite) {
  addCost(lanes, costOf(site, isWrite));
}

/// A copy that its thread has not waited for.
bool Machine::isOpenCopy(const Stamp &stamp) const {
  size_t count = threads.size();
  return stamp.agent >= count && stamp.agent < 2 * count &&
         stamp.time > threads[stamp.agent - count].groupsDone;
}

void Machine::accessShared(Thread &thread, char *address, size_t bytes,
                           uint32_t flags, uint32_t site, bool countsBanks) {
  size_t offset = sharedOffset(address);
  bool isWrite = flags & Write, isAtomic = flags & Atomic;
  if (auto other =
          shadow.conflict(thread.clock, offset, bytes, isWrite, isAtomic)) {
    fault(isOpenCopy(*other) ? FaultKind::EarlyRead : FaultKind::Race, thread,
          site,
          Twine(bytes) + " bytes at " + Twine(offset) + " of shared memory",
          other);
  }
  if (!isWrite && shadow.isUninitialized(offset, bytes))
    fault(FaultKind::Uninitialized, thread, site,
          Twine(bytes) + " bytes at " + Twine(offset) + " of shared memory");
  shadow.record(thread.clock, {thread.id, thread.clock.now(), site}, offset,
                bytes, isWrite, isAtomic);
  if (countsBanks)
    warps[thread.id / warpLanes].banks.access(thread.id % warpLanes, site,
                                              {offset, unsigned(bytes)},
                                              costOf(site, isWrite));
}

/// Whether the access may be done.
bool Machine::accessGlobal(Thread &thread, char *address, size_t bytes,
                           uint32_t flags, uint32_t site) {
  for (const Region &region : regions) {
    if (address < region.begin || address >= region.end)
      continue;
    if (address + bytes > region.end)
      break;
    if ((flags & Write) && !region.isWritable)
      fault(FaultKind::ReadOnly, thread, site,
            "writes byte " + Twine(uint64_t(address - region.begin)) + " of " +
                region.name);
    return region.isWritable || !(flags & Write);
  }
  std::string where = "no buffer is there";
  for (const Region &region : regions)
    if (address >= region.begin - 4096 && address < region.end + 4096)
      where = "byte " + std::to_string(address - region.begin) + " of " +
              region.name + ", which has " +
              std::to_string(region.end - region.begin);
  fault(FaultKind::OutOfBounds, thread, site,
        Twine(bytes) + " bytes: " + where);
  return false;
}

char *Machine::access(Thread &thread, char *address, size_t bytes, size_t align,
                      uint32_t flags, uint32_t site, bool countsBanks) {
  if (thread.fiber.owns(address) || bytes == 0)
    return address;
  bool isScrap = uintptr_t(address) % align != 0;
  if (isScrap)
    fault(FaultKind::Misaligned, thread, site,
          Twine(bytes) + " bytes at an address that is no multiple of " +
              Twine(align));
  if (isShared(address)) {
    if (sharedOffset(address) + bytes <= sharedBytes) {
      accessShared(thread, address, bytes, flags, site, countsBanks);
    } else {
      fault(FaultKind::OutOfBounds, thread, site,
            Twine(bytes) + " bytes at " + Twine(sharedOffset(address)) +
                " of shared memory, which has " + Twine(sharedBytes));
      isScrap = true;
    }
  } else {
    isScrap |= !accessGlobal(thread, address, bytes, flags, site);
  }
  if (!isScrap)
    return address;
  scrap.assign(bytes / 64 + 2, {});
  return reinterpret_cast<char *>(scrap.data());
}

char *Machine::runAccess(char *address, uint32_t bytes, uint32_t align,
                         uint32_t flags, uint32_t site) {
  return access(*current, address, bytes, align, flags, site);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Machine::move(const AsyncCopy &copy) {
  std::memcpy(copy.destination, copy.source, copy.valid);
  std::memset(copy.destination + copy.valid, 0, copy.bytes - copy.valid);
}

/// Others may read the destination once this thread has waited and they have
/// met it; nobody before.
void Machine::copyAsync(const Call &call, const AsyncCopy &copy) {
  Thread &thread = call.thread;
  if (copy.valid > copy.bytes)
    return fault(FaultKind::BadOperand, thread, call.site,
                 "copies " + Twine(copy.valid) + " of " + Twine(copy.bytes) +
                     " bytes");
  if (!isShared(copy.destination) ||
      sharedOffset(copy.destination) + copy.bytes > sharedBytes)
    return fault(FaultKind::OutOfBounds, thread, call.site,
                 "the destination is not in shared memory");
  if (uintptr_t(copy.destination) % copy.bytes)
    return fault(FaultKind::Misaligned, thread, call.site,
                 "the destination is no multiple of " + Twine(copy.bytes));
  AsyncCopy allowed = copy;
  if (copy.valid)
    allowed.source = access(thread, const_cast<char *>(copy.source), copy.valid,
                            copy.bytes, Read, call.site, /*countsBanks=*/false);
  size_t offset = sharedOffset(copy.destination);
  if (auto other = shadow.conflict(thread.clock, offset, copy.bytes,
                                   /*isWrite=*/true, /*isAtomic=*/false))
    fault(FaultKind::Race, thread, call.site,
          "copies to " + Twine(offset) + " of shared memory", other);
  Stamp stamp{copyAgent(thread), thread.groupsCommitted + 1, call.site};
  shadow.record(thread.clock, stamp, offset, copy.bytes, /*isWrite=*/true,
                /*isAtomic=*/false);
  warps[thread.id / warpLanes].banks.access(
      thread.id % warpLanes, call.site, {offset, copy.bytes},
      costOf(call.site, /*isWrite=*/true));
  if (copies == Copies::Eager)
    move(allowed);
  else
    thread.openCopies.push_back(allowed);
}

void Machine::commitCopies(Thread &thread) {
  thread.groups.push_back(std::move(thread.openCopies));
  thread.openCopies.clear();
  ++thread.groupsCommitted;
}

void Machine::waitForCopies(Thread &thread, Time pending) {
  while (thread.groups.size() > pending) {
    for (const AsyncCopy &copy : thread.groups.front())
      move(copy);
    thread.groups.pop_front();
    ++thread.groupsDone;
  }
  thread.clock.learn(copyAgent(thread), thread.groupsDone);
}
