//===- Schedule.cpp - the table of Schedules.def --------------------------===//

#include "codegen/CUDA/Hopper/Schedule.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

static constexpr Schedule kSchedules[] = {
#define HOPPER_SCHEDULE(NAME, CONSUMERS, BLOCK_N, STAGES, BLOCKS, LAUNCH,      \
                        PRODUCER, CONSUMER)                                    \
  {llvm::StringLiteral(NAME),                                                  \
   CONSUMERS,                                                                  \
   BLOCK_N,                                                                    \
   STAGES,                                                                     \
   BLOCKS,                                                                     \
   LAUNCH,                                                                     \
   PRODUCER,                                                                   \
   CONSUMER},
#include "codegen/CUDA/Hopper/Schedules.def"
};

/// What the hardware asks of a row; a wrong row does not compile.
static constexpr bool isValid(const Schedule &s) {
  int64_t warpgroups = s.consumers + 1;
  int64_t kept = s.producerRegisters + s.consumers * s.consumerRegisters;
  return s.blockN % 64 == 0 && s.blockN <= 256 && s.stages >= 2 &&
         s.launchRegisters % 8 == 0 && s.producerRegisters % 8 == 0 &&
         s.consumerRegisters % 8 == 0 && s.producerRegisters >= 24 &&
         s.consumerRegisters <= 255 && kept <= s.launchRegisters * warpgroups &&
         s.blocks * s.threads() * s.launchRegisters <= 65536 &&
         s.stages * (s.stageBytes() + 16) <= s.availableBytes();
}

static constexpr bool areValid() {
  for (const Schedule &schedule : kSchedules)
    if (!isValid(schedule))
      return false;
  return true;
}
static_assert(areValid(), "a row of Schedules.def exceeds a multiprocessor");

llvm::ArrayRef<Schedule> hopper::schedules() { return kSchedules; }

const Schedule *hopper::findSchedule(llvm::StringRef name) {
  const auto *found = llvm::find_if(
      kSchedules, [&](const Schedule &s) { return s.name == name; });
  return found == std::end(kSchedules) ? nullptr : found;
}
