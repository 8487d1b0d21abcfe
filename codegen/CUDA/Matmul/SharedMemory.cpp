//===- SharedMemory.cpp - who has which part of shared memory -------------===//

#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "codegen/CUDA/Matmul/SharedTile.h"
#include "codegen/CUDA/Matmul/Workspace.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Elements of a run: 16 bytes of the narrowest result or matrix operand, as
/// far as the row's length can be cut into such runs.
static int64_t runWidth(const MatmulKernel &kernel,
                        const MatmulSchedule &schedule) {
  int64_t width = 4;
  auto consider = [&](Type element) {
    if (bytesOf(element) <= 2)
      width = 8;
  };
  for (const KernelResult &result : kernel.results)
    consider(result.element);
  for (const KernelOperand &operand : kernel.operands)
    if (operand.access == Access::Element)
      consider(operand.element);
  while (kernel.n % width != 0 || schedule.warpN % width != 0)
    width /= 2;
  return width;
}

SharedPlan cuda::planShared(const MatmulKernel &kernel,
                            const MatmulSchedule &schedule) {
  SharedPlan plan;
  plan.width = runWidth(kernel, schedule);
  // Eight floats more than the row: so the rows that a warp writes at once lie
  // in different banks.
  plan.rowBytes = 4 * (schedule.warpN + 8);
  plan.halfBytes = plan.width == 8 ? 4 * (schedule.warpN / 2 + 4) : 0;
  int64_t ring = schedule.stages * stageBytes(kernel, schedule);
  plan.slab = schedule.warpM / 16;
  while (plan.slab > 1 &&
         schedule.warps() * plan.slabRows() * plan.rowBytes > ring)
    plan.slab /= 2;
  plan.warpBytes = plan.slabRows() * plan.rowBytes;
  plan.columnSums = std::max(ring, schedule.warps() * plan.warpBytes);
  int64_t warpRows = schedule.blockM / schedule.warpM;
  int64_t sums = columnSums(kernel).size();
  plan.flag = plan.columnSums + 4 * sums * warpRows * schedule.blockN;
  bool hasFlag = planWorkspace(kernel, schedule).isNeeded();
  plan.total = plan.flag + (hasFlag ? 16 : 0);
  return plan;
}
