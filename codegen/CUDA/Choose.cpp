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
/// What the L2 cache of a chip without figures reads, in bandwidths of memory.
static constexpr double kCacheShare = 3;
/// What the shorter of two times that overlap still costs. An estimate.
static constexpr double kOverlapCost = 0.1;

namespace {
/// What the model needs of the chip and the problem.
struct Problem {
  const Chip &chip;
  double flops;          ///< per second, of all multiprocessors
  double bandwidth;      ///< of memory
  double cacheBandwidth; ///< of the L2 cache
  int64_t batch, m, n, k;
  int64_t elementBytes;
};
} // namespace

/// The rows of Schedules.def for multiprocessors with so many KiB.
static SmallVector<MatmulSchedule> tableFor(int64_t kibibytes) {
  SmallVector<MatmulSchedule> table;
#define SCHEDULE(SHARED, BM, BN, BK, WM, WN, STAGES, RESIDENT)                 \
  if ((SHARED) == kibibytes)                                                   \
    table.push_back({BM, BN, BK, WM, WN, STAGES, RESIDENT});
#include "codegen/CUDA/Schedules.def"
  return table;
}

ArrayRef<MatmulSchedule> cuda::schedulesOf(const Chip &chip) {
  static const SmallVector<MatmulSchedule> large = tableFor(164),
                                           small = tableFor(100);
  return chip.sharedPerSM >= int64_t(164) * 1024 ? large : small;
}

static double tilesOf(const MatmulSchedule &s, const Problem &p) {
  return static_cast<double>(llvm::divideCeil(p.m, s.blockM) *
                             llvm::divideCeil(p.n, s.blockN) * p.batch);
}

/// Positions along k that one block adds up.
static double depthOf(const MatmulSchedule &s, const Problem &p) {
  return llvm::alignTo(llvm::divideCeil(p.k, s.splitK), s.blockK);
}

/// Seconds of the tensor cores.
static double computeSeconds(const MatmulSchedule &s, const Problem &p) {
  double blocks = tilesOf(s, p) * s.splitK;
  double atOnce = static_cast<double>(p.chip.multiprocessors * s.resident);
  double waves = std::ceil(blocks / atOnce);
  double reads = kEvenWarpTile / s.warpM + kEvenWarpTile / s.warpN;
  double blockFlops = 2.0 * s.blockM * s.blockN * depthOf(s, p) * (1 + reads);
  double wave = blockFlops * atOnce / p.flops;
  // The last wave takes as long as one of its blocks would with the
  // multiprocessor to itself.
  double last = blocks - (waves - 1) * atOnce;
  double share = std::max(1.0 / s.resident, last / atOnce);
  return (waves - 1 + share) * wave + waves * kWaveSeconds;
}

/// Seconds in which memory gives each operand once and takes the result.
static double memorySeconds(const Problem &p) {
  double elements =
      static_cast<double>(p.batch) * ((p.m + p.n) * p.k + p.m * p.n);
  return elements * p.elementBytes / p.bandwidth;
}

/// Seconds in which the cache gives each block its operands.
static double cacheSeconds(const MatmulSchedule &s, const Problem &p) {
  double elements =
      tilesOf(s, p) * s.splitK * (s.blockM + s.blockN) * depthOf(s, p);
  return elements * p.elementBytes / p.cacheBandwidth;
}

/// Seconds in which the parts of a split sum are written and read.
static double splitSeconds(const MatmulSchedule &s, const Problem &p) {
  if (s.splitK == 1)
    return 0;
  double results = static_cast<double>(p.batch) * p.m * p.n;
  return kWaveSeconds + 8 * results * s.splitK / p.bandwidth;
}

static double secondsOf(const MatmulSchedule &s, const Problem &p) {
  double parts[] = {computeSeconds(s, p), memorySeconds(p), cacheSeconds(s, p)};
  double longest = *llvm::max_element(parts);
  double all = parts[0] + parts[1] + parts[2];
  return longest + kOverlapCost * (all - longest) + splitSeconds(s, p);
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
                 model->caches.empty() ? kCacheShare * model->bandwidth
                                       : model->caches.back().bandwidth,
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
  if (hasOperandSums(kernel) &&
      schedule.warpM * schedule.warpN > int64_t(64) * 32)
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
