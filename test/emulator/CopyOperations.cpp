//===- CopyOperations.cpp - cp.async and ldmatrix -------------------------===//

#include "test/emulator/Operations.h"

using namespace mlir::mp::emulator;

/// Arguments: destination, source, and the bytes that the source has.
template <unsigned Bytes, bool HasSize>
static void copy(const Call &call) {
  call.machine.count("cp.async");
  unsigned valid = HasSize ? call.argument<uint32_t>(2) : Bytes;
  call.machine.copyAsync(call, {call.argument<char *>(0),
                                call.argument<const char *>(1), Bytes, valid});
}

static void commit(const Call &call) {
  call.machine.count("cp.async.commit");
  call.machine.commitCopies(call.thread);
}

static void waitGroup(const Call &call) {
  call.machine.count("cp.async.wait");
  call.machine.waitForCopies(call.thread, call.argument<uint32_t>(0));
}

/// Also what was not committed.
static void waitAll(const Call &call) {
  call.machine.count("cp.async.wait");
  call.machine.commitCopies(call.thread);
  call.machine.waitForCopies(call.thread, 0);
}

/// One 8 x 8 matrix: lane 8 i + r has the address of row r of matrix i. Lane l
/// gets elements 2 (l % 4) and the next of row l / 4; transposed, of column
/// l / 4. PTX ISA, ldmatrix.
static void loadMatrix(const Call &call, const Meeting &meeting,
                       unsigned matrix, bool isTransposed) {
  Machine &machine = call.machine;
  const char *rows[8];
  llvm::SmallVector<LaneAccess, 8> lanes;
  for (unsigned r = 0; r != 8; ++r) {
    unsigned lane = 8 * matrix + r;
    char *address = meeting.argument<char *>(lane, 0);
    rows[r] = machine.access(machine.laneOf(call.thread, lane), address, 16, 16,
                             Read, call.site, /*countsBanks=*/false);
    if (machine.isShared(address))
      lanes.push_back({machine.sharedOffset(address), 16});
  }
  machine.addBankCost(call.site, lanes, /*isWrite=*/false);
  for (unsigned lane = 0; lane != warpLanes; ++lane) {
    uint16_t pair[2];
    for (unsigned e = 0; e != 2; ++e) {
      unsigned row = lane / 4, column = 2 * (lane % 4) + e;
      if (isTransposed)
        std::swap(row, column);
      std::memcpy(&pair[e], rows[row] + 2 * column, sizeof pair[e]);
    }
    uint32_t bits = uint32_t(pair[1]) << 16 | pair[0];
    meeting.setResult(lane, matrix, bits);
  }
}

template <unsigned Count, bool IsTransposed>
static void loadMatrices(const Call &call) {
  Machine &machine = call.machine;
  machine.meet(call, ~uint32_t(0), [&](const Meeting &meeting) {
    machine.count("ldmatrix");
    if (meeting.mask != ~uint32_t(0))
      return; // the missing lane is a fault already
    for (unsigned matrix = 0; matrix != Count; ++matrix)
      loadMatrix(call, meeting, matrix, IsTransposed);
  });
}

#define COPIES(KIND, BYTES)                                                    \
  {"cp.async." KIND ".shared.global." #BYTES, copy<BYTES, false>}, {           \
    "cp.async." KIND ".shared.global." #BYTES ".s", copy<BYTES, true>          \
  }
#define LOADS(COUNT)                                                           \
  {"ldmatrix.sync.aligned.m8n8.x" #COUNT ".b16.p3",                            \
   loadMatrices<COUNT, false>},                                                \
  {                                                                            \
    "ldmatrix.sync.aligned.m8n8.x" #COUNT ".trans.b16.p3",                     \
        loadMatrices<COUNT, true>                                              \
  }

llvm::ArrayRef<OperationRow> mlir::mp::emulator::copyOperations() {
  static const OperationRow rows[] = {
      COPIES("ca", 4),
      COPIES("ca", 8),
      COPIES("ca", 16),
      COPIES("cg", 16),
      {"cp.async.commit.group", commit},
      {"cp.async.wait.group", waitGroup},
      {"cp.async.wait.all", waitAll},
      LOADS(1),
      LOADS(2),
      LOADS(4),
  };
  return rows;
}
