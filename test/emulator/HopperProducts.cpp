//===- HopperProducts.cpp - wgmma -----------------------------------------===//

#include "test/emulator/Hopper.h"
#include "test/emulator/HopperOperations.h"

#include <cstring>

using namespace mlir::mp::emulator;

static constexpr unsigned kRows = 64, kPiece = 16;
static constexpr size_t kDepth = 16;

namespace {
/// What one thread hands over, beside 64 * columns / 128 accumulators.
struct Operands {
  uint64_t lhs, rhs;
  uint32_t adds, lhsTransposed, rhsTransposed;
};
} // namespace

static unsigned leaderOf(const Thread &thread) {
  return thread.id / warpgroupThreads * warpgroupThreads;
}

static Agent productAgent(const Call &call) {
  return Agent(4 * call.machine.threadCount() + leaderOf(call.thread));
}

/// Lets the 128 threads meet; the last one does `together`.
static void meetWarpgroup(const Call &call,
                          llvm::function_ref<void(Warpgroup &)> together) {
  Machine &machine = call.machine;
  Warpgroup &group = machine.hopper().warpgroups[leaderOf(call.thread)];
  unsigned member = call.thread.id % warpgroupThreads;
  if (group.arrived && group.site != call.site)
    hopper::fault(
        call, FaultKind::DivergentBarrier,
        "threads of one warpgroup are at different wgmma instructions");
  group.site = call.site;
  group.arguments[member] = call.arguments;
  group.results[member] = call.results;
  if (++group.arrived == warpgroupThreads) {
    together(group);
    group.arrived = 0;
    ++group.generation;
    return machine.progressed();
  }
  uint64_t generation = group.generation;
  machine.waitUntil(call, [&] { return group.generation != generation; });
}

void hopper::fenceRegisters(const Call &call) {
  meetWarpgroup(call, [](Warpgroup &group) { group.isFenced = true; });
}

/// Each warp of the group must be allowed to read the operand. Pieces of 16
/// bytes, each once.
static void readOperand(const Call &call, const MatrixDescriptor &matrix,
                        unsigned rows, bool isKMajor, const Stamp &stamp) {
  Machine &machine = call.machine;
  unsigned perPiece = kPiece / 2;
  unsigned rowStep = isKMajor ? 1 : perPiece, kStep = isKMajor ? perPiece : 1;
  for (unsigned row = 0; row < rows; row += rowStep)
    for (unsigned k = 0; k < kDepth; k += kStep) {
      char *piece = machine.sharedBase() + matrix.offsetOf(row, k, isKMajor);
      for (unsigned warp = 1; warp < 4; ++warp)
        machine.checkAsync(
            machine.threadAt(leaderOf(call.thread) + warp * warpLanes), stamp,
            piece, kPiece, Read);
      machine.accessAsync(machine.threadAt(leaderOf(call.thread)), stamp, piece,
                          kPiece, Read);
    }
}

static float elementAt(const char *address, bool isBrain) {
  if (isBrain) {
    uint16_t bits;
    std::memcpy(&bits, address, sizeof bits);
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  _Float16 value;
  std::memcpy(&value, address, sizeof value);
  return float(value);
}

static std::vector<float> gather(const Call &call,
                                 const MatrixDescriptor &matrix, unsigned rows,
                                 bool isKMajor, bool isBrain) {
  std::vector<float> values(rows * kDepth);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < kDepth; ++k)
      values[row * kDepth + k] = elementAt(
          call.machine.sharedBase() + matrix.offsetOf(row, k, isKMajor),
          isBrain);
  return values;
}

/// The accumulators of a thread: register i is (row, column).
static void multiplyFor(Warpgroup &group, unsigned member,
                        const std::vector<float> &lhs,
                        const std::vector<float> &rhs, unsigned columns,
                        bool adds) {
  unsigned warp = member / warpLanes, lane = member % warpLanes;
  for (unsigned i = 0; i < columns / 2; ++i) {
    unsigned row = 16 * warp + lane / 4 + 8 * (i >> 1 & 1);
    unsigned column = 8 * (i / 4) + 2 * (lane % 4) + (i & 1);
    float sum = 0;
    if (adds)
      std::memcpy(&sum, group.arguments[member] + (5 + i) * slotBytes,
                  sizeof sum);
    for (unsigned k = 0; k < kDepth; ++k)
      sum += lhs[row * kDepth + k] * rhs[column * kDepth + k];
    std::memcpy(group.results[member] + i * slotBytes, &sum, sizeof sum);
  }
}

/// A descriptor holds the low bits of an address; its start becomes an offset
/// in shared memory.
static MatrixDescriptor matrixAt(const Call &call, uint64_t bits) {
  constexpr uint64_t kWindow = 1 << 18;
  MatrixDescriptor matrix(bits);
  matrix.start =
      (matrix.start - uintptr_t(call.machine.sharedBase())) % kWindow;
  return matrix;
}

static void multiplyTogether(const Call &call, Warpgroup &group,
                             unsigned columns, bool isBrain) {
  Operands operands{call.argument<uint64_t>(0), call.argument<uint64_t>(1),
                    call.argument<uint32_t>(2), call.argument<uint32_t>(3),
                    call.argument<uint32_t>(4)};
  call.machine.count("wgmma.mma_async");
  MatrixDescriptor lhs = matrixAt(call, operands.lhs),
                   rhs = matrixAt(call, operands.rhs);
  for (const MatrixDescriptor *matrix : {&lhs, &rhs})
    if (std::string why = whyNotDescriptor(*matrix); !why.empty())
      return hopper::fault(call, FaultKind::BadOperand, why);
  if (!group.isFenced)
    hopper::fault(call, FaultKind::BadOperand,
                  "wgmma without wgmma.fence before it");
  group.hasOpen = true;
  Stamp stamp{productAgent(call), group.committed + 1, call.site};
  bool lhsK = !operands.lhsTransposed, rhsK = !operands.rhsTransposed;
  readOperand(call, lhs, kRows, lhsK, stamp);
  readOperand(call, rhs, columns, rhsK, stamp);
  std::vector<float> a = gather(call, lhs, kRows, lhsK, isBrain);
  std::vector<float> c = gather(call, rhs, columns, rhsK, isBrain);
  for (unsigned member = 0; member < warpgroupThreads; ++member)
    multiplyFor(group, member, a, c, columns, operands.adds);
}

void hopper::multiply(const Call &call, unsigned columns, bool isBrain) {
  meetWarpgroup(call, [&](Warpgroup &group) {
    multiplyTogether(call, group, columns, isBrain);
  });
}

void hopper::commitProducts(const Call &call) {
  meetWarpgroup(call, [](Warpgroup &group) {
    ++group.committed;
    group.hasOpen = false;
  });
}

void hopper::waitForProducts(const Call &call) {
  uint64_t pending = call.argument<uint64_t>(0);
  Warpgroup &group = call.machine.hopper().warpgroups[leaderOf(call.thread)];
  meetWarpgroup(call, [&](Warpgroup &waiting) {
    if (waiting.committed > pending)
      waiting.done =
          std::max<Time>(waiting.done, waiting.committed - Time(pending));
  });
  call.thread.clock.learn(productAgent(call), group.done);
}

void hopper::readAccumulators(const Call &call) {
  Warpgroup &group = call.machine.hopper().warpgroups[leaderOf(call.thread)];
  if (group.hasOpen || group.done != group.committed)
    hopper::fault(call, FaultKind::EarlyRead,
                  "accumulators are used before their products are done");
  group.isFenced = false;
}

void hopper::setRegisters(const Call &call) {
  uint32_t registers = call.argument<uint32_t>(0);
  if (registers % 8 || registers < 24 || registers > 256)
    hopper::fault(call, FaultKind::BadOperand,
                  "setmaxnreg takes a multiple of 8 from 24 to 256");
  meetWarpgroup(call, [](Warpgroup &) {});
}
