//===- RowSchedule.cpp - how a row kernel is spread over threads ----------===//

#include "codegen/CUDA/Rows/RowSchedule.h"
#include "codegen/CUDA/Rows/Values.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Threads of the smallest block worth launching.
static constexpr int64_t kBlockThreads = 128;
/// Rows that share one partial column sum.
static constexpr int64_t kRowsPerSum = 32;

std::string RowSchedule::str() const {
  return llvm::formatv("v{0} t{1} g{2} s{3} c{4}{5}", vector, threads, groups,
                       steps, chunks(), isLooped ? " looped" : "")
      .str();
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

int64_t cuda::widestVector(const RowKernel &kernel, const RowPlan &plan) {
  int64_t bytes = 4;
  for (const RowStage &stage : kernel.stages)
    for (auto [input, access] : inputsOf(stage))
      if (access == Access::Element && !plan.stages.count(input))
        bytes = std::min(bytes, storedBytes(elementOf(input)));
  for (const Sweep &sweep : plan.sweeps)
    for (const RowStore &store : sweep.stores)
      bytes = std::min(bytes, storedBytes(elementOf(store.value)));
  // More than 8 would only cost registers.
  int64_t vector = std::min<int64_t>(8, 16 / bytes);
  while (kernel.columns % vector != 0)
    vector /= 2;
  return vector;
}

/// How many f32 values of the row a thread may hold in registers, beside what
/// it computes with: a block has 65536 registers.
static int64_t registerBudget(int64_t threads) {
  if (threads <= 256)
    return 64;
  return threads == 512 ? 56 : 24;
}

/// Vectors of a row, and threads to have one each.
static int64_t mostThreads(const RowKernel &kernel, int64_t vector) {
  return llvm::PowerOf2Ceil(llvm::divideCeil(kernel.columns, vector));
}

/// Spreads a row that is reduced over as few threads as hold it.
static RowSchedule scheduleReduction(const RowKernel &kernel,
                                     const RowPlan &plan) {
  RowSchedule schedule;
  schedule.vector = widestVector(kernel, plan);
  schedule.tile = kernel.columns;
  schedule.threads =
      std::min<int64_t>(32, mostThreads(kernel, schedule.vector));
  int64_t halves = std::max<int64_t>(
      2, plan.keptHalves + 2 * int64_t(plan.columnSums.size()));
  auto held = [&] { return schedule.chunks() * schedule.vector * halves / 2; };
  while (held() > registerBudget(schedule.threads) && schedule.threads < 1024)
    schedule.threads *= 2;
  if (held() > registerBudget(schedule.threads)) {
    schedule.isLooped = true;
    schedule.threads = 512;
    schedule.unroll = std::max<int64_t>(1, 16 / schedule.vector);
  }
  schedule.groups = std::max<int64_t>(1, kBlockThreads / schedule.threads);
  if (!plan.columnSums.empty())
    schedule.steps = std::max<int64_t>(1, kRowsPerSum / schedule.groups);
  return schedule;
}

/// Cuts a matrix whose rows are not reduced into tiles.
static RowSchedule scheduleTiles(const RowKernel &kernel, const RowPlan &plan) {
  RowSchedule schedule;
  schedule.vector = widestVector(kernel, plan);
  bool hasSums = !plan.columnSums.empty();
  int64_t most = mostThreads(kernel, schedule.vector);
  schedule.threads = std::min<int64_t>(hasSums ? 32 : kBlockThreads, most);
  schedule.groups = (hasSums ? 2 : 1) * kBlockThreads / schedule.threads;
  int64_t slice = schedule.slice();
  int64_t chunks = hasSums ? 1 : std::max<int64_t>(1, 16 / schedule.vector);
  schedule.tile = std::min(slice * chunks, kernel.columns);
  if (!hasSums)
    return schedule;
  schedule.steps = 16;
  schedule.rowUnroll = 4;
  return schedule;
}

RowSchedule cuda::chooseRowSchedule(const RowKernel &kernel,
                                    const RowPlan &plan) {
  return plan.hasRowReductions() ? scheduleReduction(kernel, plan)
                                 : scheduleTiles(kernel, plan);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static LogicalResult checkThreads(const RowKernel &kernel,
                                  const RowSchedule &schedule) {
  func::FuncOp func = kernel.func;
  auto error = [&] { return func.emitError("row schedule: "); };
  if (!llvm::isPowerOf2_64(schedule.threads))
    return error() << "threads of a row must be a power of two, not "
                   << schedule.threads;
  if (schedule.blockThreads() % 32 != 0 || schedule.blockThreads() > 1024)
    return error() << "a block needs whole warps and at most 1024 threads, not "
                   << schedule.blockThreads();
  if (schedule.vector < 1 || kernel.columns % schedule.vector != 0)
    return error() << "a vector of " << schedule.vector
                   << " does not divide a row of " << kernel.columns;
  if (schedule.rowUnroll < 1 || schedule.steps % schedule.rowUnroll != 0)
    return error() << "steps must be a multiple of rowUnroll";
  return success();
}

static LogicalResult checkTile(const RowKernel &kernel, const RowPlan &plan,
                               const RowSchedule &schedule) {
  func::FuncOp func = kernel.func;
  auto error = [&] { return func.emitError("row schedule: "); };
  bool isWhole = schedule.tile == kernel.columns;
  if (!isWhole && (plan.hasRowReductions() || schedule.isLooped))
    return error() << "a reduced row must lie in one tile";
  if (!isWhole && schedule.tile % schedule.slice() != 0)
    return error() << "a tile of " << schedule.tile
                   << " columns is no multiple of what the threads cover, "
                   << schedule.slice();
  if (schedule.isLooped && schedule.unroll < 1)
    return error() << "unroll must be at least 1";
  return success();
}

static LogicalResult checkColumnSums(const RowKernel &kernel,
                                     const RowPlan &plan,
                                     const RowSchedule &schedule) {
  func::FuncOp func = kernel.func;
  auto error = [&] { return func.emitError("row schedule: "); };
  if (plan.columnSums.empty())
    return success();
  if (schedule.isLooped && schedule.groups != 1)
    return error() << "column sums of a looped row need one group a block";
  for (const RowStage *stage : plan.columnSums) {
    Type type = stage->combiner->getResult(0).getType();
    if (type.getIntOrFloatBitWidth() != 32)
      return error() << "column sums must have 32 bits, not " << type;
    if (schedule.isLooped && neutralOf(stage->combiner) !=
                                 Builder(type.getContext()).getZeroAttr(type))
      return error() << "column reductions of a looped row must start at zero";
  }
  return success();
}

LogicalResult cuda::verifyRowSchedule(const RowKernel &kernel,
                                      const RowPlan &plan,
                                      const RowSchedule &schedule) {
  if (failed(checkThreads(kernel, schedule)) ||
      failed(checkTile(kernel, plan, schedule)))
    return failure();
  return checkColumnSums(kernel, plan, schedule);
}
