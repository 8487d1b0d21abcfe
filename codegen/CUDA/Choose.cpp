//===- Choose.cpp - the schedule that a model ranks first -----------------===//
//
// The blocks of a grid run in waves: as many at once as the multiprocessors
// hold. The time of a kernel is that of its waves, each of which takes its
// share of the tensor cores for every step along k, and never less than memory
// needs.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Matmul/Frame.h"
#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "codegen/CUDA/Matmul/Workspace.h"
#include "codegen/CUDA/Schedule.h"
#include "passes/CostModel/CostModel.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Seconds that a wave takes beside its products: the ring fills, the results
/// are stored. An estimate.
static constexpr double kWaveSeconds = 2e-6;
/// The warp tile whose reads of shared memory take as long as its products. An
/// estimate: 64 x 64 then reaches 89 %, 32 x 32 80 % of the rate.
static constexpr double kEvenWarpTile = 4;
static constexpr int64_t kMostSplits = 16;

namespace {
/// What the model needs of the chip and the problem.
struct Problem {
  const Chip &chip;
  double flops;     ///< per second, of all multiprocessors
  double bandwidth; ///< of memory
  int64_t batch, m, n, k;
  int64_t elementBytes;
};
} // namespace

/// The rows of Schedules.def for multiprocessors with so many KiB.
static SmallVector<MatmulSchedule> tableFor(int64_t kibibytes) {
  SmallVector<MatmulSchedule> table;
#define SCHEDULE(SHARED, BM, BN, BK, WM, WN, STAGES, RESIDENT)                 \
  if (SHARED == kibibytes)                                                     \
    table.push_back({BM, BN, BK, WM, WN, STAGES, RESIDENT});
#include "codegen/CUDA/Schedules.def"
  return table;
}

ArrayRef<MatmulSchedule> cuda::schedulesOf(const Chip &chip) {
  static const SmallVector<MatmulSchedule> large = tableFor(164),
                                           small = tableFor(100);
  return chip.sharedPerSM >= 164 * 1024 ? large : small;
}

static double secondsOf(const MatmulSchedule &s, const Problem &p) {
  double tiles = llvm::divideCeil(p.m, s.blockM) *
                 llvm::divideCeil(p.n, s.blockN) * p.batch;
  double atOnce = static_cast<double>(p.chip.multiprocessors * s.resident);
  double waves = std::ceil(tiles * s.splitK / atOnce);
  double depth = llvm::alignTo(llvm::divideCeil(p.k, s.splitK), s.blockK);
  double reads = kEvenWarpTile / s.warpM + kEvenWarpTile / s.warpN;
  double blockFlops = 2.0 * s.blockM * s.blockN * depth * (1 + reads);
  double perBlock = blockFlops * atOnce / p.flops;
  // A wave that is not full still takes as long as one of its blocks would with
  // the multiprocessor to itself.
  double last = tiles * s.splitK - (waves - 1) * atOnce;
  double share = std::max(1.0 / s.resident, last / atOnce);
  double compute = (waves - 1 + share) * perBlock + waves * kWaveSeconds;

  double results = static_cast<double>(p.batch) * p.m * p.n;
  double bytes = p.elementBytes *
                 (static_cast<double>(p.batch) * (p.m + p.n) * p.k + results);
  double splitBytes = s.splitK > 1 ? 8.0 * results * s.splitK : 0;
  double splits = s.splitK > 1 ? kWaveSeconds + splitBytes / p.bandwidth : 0;
  return std::max(compute, bytes / p.bandwidth) + splits;
}

static FailureOr<Problem> makeProblem(const MatmulKernel &kernel,
                                      const Chip &chip, int64_t dynamicSize) {
  unsigned capability = 0;
  chip.name.drop_front(3).consumeInteger(10, capability);
  auto name = cudaCostModel(capability);
  Location location = functionOf(kernel).getLoc();
  if (!name)
    return emitError(location) << "no cost model for " << chip.name;
  auto model = loadCostModel(*name);
  if (!model)
    return emitError(location) << llvm::toString(model.takeError());
  bool isHalf = !kernel.lhs.element.isF32();
  const MatmulRates *rates = model->ratesOf(kernel.lhs.element.isF16() ? "f16"
                                            : isHalf ? "bf16"
                                                     : "tf32");
  if (!rates)
    return emitError(location)
           << *name << " has no rates for " << kernel.lhs.element;
  auto sizeOf = [&](int64_t extent) {
    return ShapedType::isDynamic(extent) ? dynamicSize : extent;
  };
  return Problem{chip,
                 *llvm::max_element(rates->rates),
                 model->bandwidth,
                 sizeOf(kernel.batch),
                 sizeOf(kernel.m),
                 sizeOf(kernel.n),
                 sizeOf(kernel.k),
                 bytesOf(kernel.lhs.element)};
}

/// A schedule of the table as this kernel uses it.
static MatmulSchedule adapt(MatmulSchedule schedule,
                            const MatmulKernel &kernel) {
  // As many bytes along k.
  schedule.blockK = schedule.blockK * 2 / bytesOf(kernel.lhs.element);
  return schedule;
}

static bool hasOperandSums(const MatmulKernel &kernel) {
  return llvm::any_of(kernel.sums, [](const SideSum &sum) {
    return sum.over != SideSum::Over::ResultOverM;
  });
}

/// Whether the chip holds as many blocks as the schedule says.
static bool fitsChip(const MatmulSchedule &schedule, const MatmulKernel &kernel,
                     const Chip &chip) {
  // The registers of large warp tiles leave no room for sums of the operands.
  if (hasOperandSums(kernel) && schedule.warpM * schedule.warpN > 64 * 32)
    return false;
  int64_t shared = planShared(kernel, schedule).total;
  return shared <= chip.sharedPerBlock &&
         residentBlocks(chip, schedule.threads(), schedule.registerLimit(),
                        shared) >= schedule.resident;
}

FailureOr<MatmulSchedule> cuda::chooseSchedule(const MatmulKernel &kernel,
                                               const Chip &chip,
                                               int64_t dynamicSize) {
  FailureOr<Problem> problem = makeProblem(kernel, chip, dynamicSize);
  if (failed(problem))
    return failure();
  std::optional<MatmulSchedule> best;
  double least = 0;
  std::string reason = "none of the chip's schedules fits";
  for (const MatmulSchedule &row : schedulesOf(chip)) {
    MatmulSchedule schedule = adapt(row, kernel);
    std::string unfit = whyUnfit(schedule, kernel);
    if (!unfit.empty())
      reason = unfit;
    if (!unfit.empty() || !fitsChip(schedule, kernel, chip))
      continue;
    int64_t steps = llvm::divideCeil(problem->k, schedule.blockK);
    for (int64_t k = 1; k <= kMostSplits && k <= steps; k *= 2) {
      schedule.splitK = k;
      double seconds = secondsOf(schedule, *problem);
      if (best && seconds >= least)
        continue;
      best = schedule;
      least = seconds;
    }
  }
  if (!best)
    return emitError(functionOf(kernel).getLoc())
           << "no schedule for " << chip.name << ": " << reason;
  return *best;
}
