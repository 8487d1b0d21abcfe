//===- Machine.cpp - one block of threads, running ------------------------===//

#include "test/emulator/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"

using namespace mlir::mp::emulator;
using llvm::Twine;

Machine::Machine(const Retargeted &code, void (*entry)(char **), char *shared,
                 size_t sharedCapacity)
    : code(code), entry(entry), shared(shared), sharedCapacity(sharedCapacity) {
  for (const std::string &name : code.operations)
    operations.push_back(findOperation(name));
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

bool Machine::checkLaunch() {
  Thread none;
  auto refuse = [&](const Twine &why) {
    fault(FaultKind::BadOperand, none, 0, why);
    return false;
  };
  if (launch->args.size() != code.parameterBytes.size())
    return refuse("the launch has " + Twine(launch->args.size()) +
                  " arguments, the kernel " +
                  Twine(code.parameterBytes.size()) + " parameters");
  if (launch->block.count() == 0 || launch->block.count() > 1024)
    return refuse("a block has 1 to 1024 threads, not " +
                  Twine(launch->block.count()));
  if (code.staticSharedBytes + launch->dynamicSharedBytes > sharedCapacity)
    return refuse("a block has no " +
                  Twine(code.staticSharedBytes + launch->dynamicSharedBytes) +
                  " bytes of shared memory");
  for (auto [i, argument] : llvm::enumerate(launch->args)) {
    size_t given = argument.kind == Argument::Kind::Buffer
                       ? sizeof(void *)
                       : argument.bytes.size();
    size_t wanted = code.parameterBytes[i];
    if (argument.kind != Argument::Kind::TensorMap && wanted != given)
      return refuse("argument " + Twine(i) + " has " + Twine(given) +
                    " bytes, its parameter " + Twine(wanted));
  }
  return true;
}

void Machine::registerBuffers() {
  regions.clear();
  auto add = [&](const Argument &argument, size_t number) {
    if (argument.kind != Argument::Kind::Buffer || !argument.data)
      return;
    auto *begin = static_cast<char *>(argument.data);
    regions.push_back({begin, begin + argument.size, argument.isWritable,
                       argument.name.empty()
                           ? "argument " + std::to_string(number)
                           : argument.name});
  };
  for (auto [i, argument] : llvm::enumerate(launch->args))
    add(argument, i);
  for (auto [i, argument] : llvm::enumerate(launch->buffers))
    add(argument, launch->args.size() + i);
  // A buffer that is input and output may be written.
  llvm::sort(regions, [](const Region &a, const Region &b) {
    return std::tie(b.isWritable, a.begin) < std::tie(a.isWritable, b.begin);
  });
}

/// Where each parameter's value lies: the address of a tensor map is the value
/// of a pointer, and itself of a parameter that is by value.
void Machine::bindArguments() {
  values.clear();
  values.reserve(2 * launch->args.size());
  argumentAddresses.clear();
  for (auto [i, argument] : llvm::enumerate(launch->args)) {
    const void *pointer = argument.data;
    if (argument.kind == Argument::Kind::TensorMap) {
      values.push_back(argument.bytes);
      pointer = values.back().data();
      if (code.parameterBytes[i] == 0) {
        argumentAddresses.push_back(values.back().data());
        continue;
      }
    }
    if (argument.kind == Argument::Kind::Scalar) {
      values.push_back(argument.bytes);
    } else {
      values.emplace_back(sizeof pointer);
      std::memcpy(values.back().data(), &pointer, sizeof pointer);
    }
    argumentAddresses.push_back(values.back().data());
  }
}

Report Machine::run(const Launch &given, Copies mode) {
  launch = &given;
  copies = mode;
  report = {};
  costs.clear();
  seenFaults.clear();
  if (!checkLaunch())
    return std::move(report);
  registerBuffers();
  bindArguments();
  auto runAt = [&](Dim3 at) {
    block = at;
    prepareBlock();
    runBlock();
  };
  if (!launch->onlyBlocks.empty())
    for (const Dim3 &at : launch->onlyBlocks)
      runAt(at);
  else
    for (unsigned z = 0; z != launch->grid.z; ++z)
      for (unsigned y = 0; y != launch->grid.y; ++y)
        for (unsigned x = 0; x != launch->grid.x; ++x)
          runAt({x, y, z});
  for (auto &[site, cost] : costs)
    report.costs.push_back(cost);
  return std::move(report);
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

void Machine::prepareBlock() {
  const Dim3 &size = launch->block;
  size_t count = size.count();
  sharedBytes = code.staticSharedBytes + launch->dynamicSharedBytes;
  // Not a number in any format: a read before a write shows.
  std::memset(shared, 0xff, sharedBytes);
  shadow.reset(sharedBytes);
  barriers.clear();
  warps.clear();
  warps.resize((count + warpLanes - 1) / warpLanes);
  threads.clear();
  threads.resize(count);
  stacks.reserve(count);
  auto zero = std::make_shared<const Times>(5 * count);
  for (size_t i = 0; i != count; ++i) {
    Thread &thread = threads[i];
    thread.id = unsigned(i);
    thread.index = {unsigned(i % size.x), unsigned(i / size.x % size.y),
                    unsigned(i / size.x / size.y)};
    thread.clock.reset(thread.id, unsigned(count), zero);
    thread.fiber.prepare(stacks.stack(i), Stacks::size(), runThread, this);
  }
  live = count;
  ++report.blocks;
  report.threads += count;
}

void Machine::runThread(void *context) {
  auto &machine = *static_cast<Machine *>(context);
  machine.entry(machine.argumentAddresses.data());
  machine.endOfThread(*machine.current);
  machine.current->fiber.pause();
}

void Machine::endOfThread(Thread &thread) {
  thread.isDone = true;
  --live;
  ++progress;
  // Those who wait at a barrier for all no longer wait for this one.
  for (auto &[id, barrier] : barriers)
    if (barrier.arrived != 0 && !barrier.expected && barrier.arrived == live)
      releaseBarrier(barrier);
}

void Machine::runBlock() {
  while (live != 0) {
    uint64_t before = progress;
    runThreads();
    if (before == progress && live != 0) {
      reportDeadlock();
      break;
    }
  }
  for (Warp &warp : warps)
    warp.banks.flush([&](uint32_t site) -> AccessCost & {
      return costOf(site, /*isWrite=*/false);
    });
}

void Machine::runThreads() {
  for (Thread &thread : threads) {
    if (thread.isDone)
      continue;
    current = &thread;
    ++report.switches;
    thread.fiber.resume();
  }
}

void Machine::reportDeadlock() {
  for (const Thread &thread : threads)
    if (!thread.isDone)
      return fault(thread.waitsForLanes ? FaultKind::MissingLane
                                        : FaultKind::Deadlock,
                   thread, thread.site,
                   Twine(live) + " threads wait, and nobody else runs");
}

void Machine::wait(Thread &thread, uint32_t site) {
  thread.site = site;
  thread.fiber.pause();
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

uint32_t Machine::liveLanes(const Thread &thread) const {
  size_t first = thread.id / warpLanes * warpLanes;
  uint32_t mask = 0;
  for (size_t lane = 0; lane != warpLanes; ++lane)
    if (first + lane < threads.size() && !threads[first + lane].isDone)
      mask |= uint32_t(1) << lane;
  return mask;
}

void Machine::meet(const Call &call, uint32_t mask,
                   llvm::function_ref<void(const Meeting &)> together) {
  Thread &thread = call.thread;
  Warp &warp = warps[thread.id / warpLanes];
  unsigned lane = thread.id % warpLanes;
  uint32_t bit = uint32_t(1) << lane;
  uint32_t present = liveLanes(thread);
  if (!(mask & bit))
    fault(FaultKind::BadOperand, thread, call.site,
          "lane " + Twine(lane) + " is not in its own mask");
  if (uint32_t gone = mask & ~present; gone)
    fault(FaultKind::MissingLane, thread, call.site,
          "lane " + Twine(llvm::countr_zero(gone)) + " has ended");
  std::shared_ptr<Meeting> &slot = warp.open[call.site];
  if (!slot)
    slot = std::make_shared<Meeting>();
  std::shared_ptr<Meeting> meeting = slot;
  meeting->mask = (mask & present) | bit;
  meeting->arrived |= bit;
  meeting->arguments[lane] = call.arguments;
  meeting->results[lane] = call.results;
  if (meeting->arrived == meeting->mask) {
    warp.open.erase(call.site);
    ++progress;
    together(*meeting);
    meeting->isOver = true;
    return;
  }
  thread.waitsForLanes = true;
  while (!meeting->isOver)
    wait(thread, call.site);
  thread.waitsForLanes = false;
}

void Machine::releaseBarrier(Barrier &barrier) {
  llvm::SmallVector<Clock *> clocks;
  for (Thread *thread : barrier.waiting)
    clocks.push_back(&thread->clock);
  if (!clocks.empty())
    Clock::meet(clocks);
  barrier.waiting.clear();
  barrier.arrived = 0;
  ++barrier.generation;
  ++progress;
}

void Machine::barrier(const Call &call, uint32_t id, uint32_t expected) {
  Thread &thread = call.thread;
  Barrier &barrier = barriers[id];
  for (const Thread *other : barrier.waiting)
    if (other->id / warpLanes == thread.id / warpLanes &&
        other->site != call.site)
      fault(FaultKind::DivergentBarrier, thread, call.site,
            "threads of one warp are at barrier " + Twine(id) +
                " at different instructions",
            Stamp{other->id, 0, other->site});
  barrier.waiting.push_back(&thread);
  barrier.expected = expected;
  ++barrier.arrived;
  thread.site = call.site;
  if (barrier.arrived == (expected ? expected : live))
    return releaseBarrier(barrier);
  uint64_t generation = barrier.generation;
  while (barrier.generation == generation)
    wait(thread, call.site);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

Dim3 Machine::threadOf(const Stamp &stamp) const {
  return threads.empty() ? Dim3{} : threads[stamp.agent % threads.size()].index;
}

void Machine::fault(FaultKind kind, const Thread &thread, uint32_t site,
                    const Twine &message, std::optional<Stamp> other) {
  auto [entry, isNew] = seenFaults.try_emplace(
      {int(kind), site, other ? other->site : 0}, report.faults.size());
  if (!isNew) {
    ++report.faults[entry->second].count;
    return;
  }
  Fault found{kind, code.kernel,   block, thread.index, code.sites[site], "",
              {},   message.str(), 1};
  if (other) {
    found.otherLocation = code.sites[other->site];
    found.otherThread = threadOf(*other);
  }
  report.faults.push_back(std::move(found));
}

void Machine::runOperation(uint32_t operation, uint32_t site,
                           const char *arguments, char *results) {
  operations[operation]({*this, *current, site, arguments, results});
}
