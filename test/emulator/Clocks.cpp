//===- Clocks.cpp - what is ordered before what ---------------------------===//

#include "test/emulator/Clocks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace mlir::mp::emulator;

void mlir::mp::emulator::raise(Times &into, const Times &from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t i = 0, end = from.size(); i != end; ++i)
    into[i] = std::max(into[i], from[i]);
}

void Clock::reset(unsigned thread, unsigned numThreads,
                  std::shared_ptr<const Times> zero) {
  self = thread;
  threads = numThreads;
  own = 1;
  copiesDone = 0;
  shared = std::move(zero);
}

void Clock::putOwn(Times &times) const {
  times[self] = own;
  times[self + threads] = copiesDone;
}

Times Clock::known() const {
  Times times = *shared;
  putOwn(times);
  return times;
}

void Clock::learn(const std::shared_ptr<const Times> &times) {
  if (times == shared)
    return;
  auto merged = std::make_shared<Times>(*shared);
  raise(*merged, *times);
  shared = std::move(merged);
}

void Clock::learn(Agent agent, Time time) {
  if (agent == self + threads) {
    copiesDone = std::max(copiesDone, time);
    return;
  }
  if (knows(agent, time))
    return;
  auto merged = std::make_shared<Times>(*shared);
  if (merged->size() <= agent)
    merged->resize(agent + 1);
  (*merged)[agent] = time;
  shared = std::move(merged);
}

void Clock::fenceProxy() {
  auto fenced = std::make_shared<Times>(known());
  for (unsigned t = 0; t != threads; ++t)
    (*fenced)[2 * threads + t] =
        std::max((*fenced)[2 * threads + t], (*fenced)[t]);
  shared = std::move(fenced);
  // What the thread writes from here on is not covered.
  advance();
}

void Clock::meet(llvm::ArrayRef<Clock *> clocks) {
  auto all = std::make_shared<Times>(*clocks.front()->shared);
  llvm::SmallVector<const Times *, 4> seen{clocks.front()->shared.get()};
  for (const Clock *clock : clocks) {
    if (llvm::is_contained(seen, clock->shared.get()))
      continue;
    seen.push_back(clock->shared.get());
    raise(*all, *clock->shared);
  }
  for (const Clock *clock : clocks)
    clock->putOwn(*all);
  for (Clock *clock : clocks) {
    clock->shared = all;
    clock->advance();
  }
}
