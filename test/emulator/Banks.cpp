//===- Banks.cpp - what shared memory takes for a warp's access -----------===//

#include "test/emulator/Banks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <algorithm>

using namespace mlir::mp::emulator;

/// Lanes whose words go through the banks together.
static size_t phaseLanes(unsigned bytes) {
  return bytes >= 16 ? 8 : bytes == 8 ? 16 : 32;
}

static void addPhase(llvm::ArrayRef<LaneAccess> lanes, AccessCost &cost) {
  llvm::SmallVector<uint64_t, 128> words;
  for (const LaneAccess &lane : lanes)
    for (uint64_t word = lane.offset / 4,
                  end = (lane.offset + lane.bytes + 3) / 4;
         word != end; ++word)
      words.push_back(word);
  llvm::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  unsigned perBank[32] = {}, most = 0;
  for (uint64_t word : words)
    most = std::max(most, ++perBank[word % 32]);
  cost.paid += most;
  cost.ideal += (words.size() + 31) / 32;
}

void mlir::mp::emulator::addCost(llvm::ArrayRef<LaneAccess> lanes,
                                 AccessCost &cost) {
  if (lanes.empty())
    return;
  ++cost.requests;
  size_t phase = phaseLanes(lanes.front().bytes);
  for (; !lanes.empty();
       lanes = lanes.drop_front(std::min(phase, lanes.size())))
    addPhase(lanes.take_front(phase), cost);
}

/// Lanes come in the order in which their fibers ran.
static void addOrdered(llvm::SmallVectorImpl<LaneAccess> &lanes,
                       AccessCost &cost) {
  llvm::sort(lanes, [](const LaneAccess &a, const LaneAccess &b) {
    return a.lane < b.lane;
  });
  addCost(lanes, cost);
}

void BankCounter::access(unsigned lane, uint32_t site, LaneAccess access,
                         AccessCost &cost) {
  Site &slot = sites[site];
  uint64_t index = slot.seen[lane]++ - slot.closed;
  if (index >= slot.open.size())
    slot.open.resize(index + 1);
  access.lane = lane;
  slot.open[index].push_back(access);
  while (!slot.open.empty() && slot.open.front().size() == lanes) {
    addOrdered(slot.open.front(), cost);
    slot.open.pop_front();
    ++slot.closed;
  }
}

void BankCounter::flush(
    llvm::function_ref<AccessCost &(uint32_t site)> costOf) {
  for (auto &[site, slot] : sites)
    for (auto &lanes : slot.open)
      addOrdered(lanes, costOf(site));
  sites.clear();
}
