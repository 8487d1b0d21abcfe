//===- Workspace.cpp - what blocks of a kernel tell each other ------------===//

#include "codegen/CUDA/Matmul/Workspace.h"
#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

SmallVector<SideSum> cuda::columnSums(const MatmulKernel &kernel) {
  SmallVector<SideSum> sums;
  for (const SideSum &sum : kernel.sums)
    if (sum.over == SideSum::Over::ResultOverM)
      sums.push_back(sum);
  return sums;
}

WorkspacePlan cuda::planWorkspace(const MatmulKernel &kernel,
                                  const MatmulSchedule &schedule) {
  WorkspacePlan plan;
  if (schedule.splitK > 1) {
    int64_t floats = schedule.blockM * schedule.blockN;
    // Sums of the operands: four floats of each lane for 16 rows, 8 columns.
    int64_t perThread = 0;
    for (const SideSum &sum : kernel.sums) {
      if (sum.over == SideSum::Over::LhsOverK)
        perThread += schedule.warpM / 4;
      if (sum.over == SideSum::Over::RhsOverK)
        perThread += schedule.warpN / 2;
    }
    plan.accumulatorBytes = 4 * (floats + perThread * schedule.threads());
  }
  bool hasOneRowOfTiles =
      !ShapedType::isDynamic(kernel.m) && kernel.m <= schedule.blockM;
  if (!hasOneRowOfTiles)
    plan.columnSumBytes = 4 * schedule.blockN * columnSums(kernel).size();
  return plan;
}

/// Blocks of the grid.
static Value gridBlocks(KernelBuilder &b) {
  return NVVM::GridDimXOp::create(b, b.getI32Type());
}

Value cuda::blockData(Frame &frame, Value block) {
  KernelBuilder &b = frame.b;
  WorkspacePlan plan = planWorkspace(frame.kernel, frame.schedule);
  Value counters = b.mul(b.toI64(gridBlocks(b)), WorkspacePlan::kCounterBytes);
  Value data = b.mul(b.toI64(block), plan.dataBytes());
  return b.offset(b.offset(frame.workspace, counters), data);
}

/// Counts thread 0 in and tells the block, through shared memory, whether it
/// was the last.
static void countIn(Frame &frame, Value address, Value count, Value flag) {
  KernelBuilder &b = frame.b;
  auto isFirst = scf::IfOp::create(b, b.isEqual(frame.thread, b.i32(0)),
                                   /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isFirst.thenBlock());
  Value before = LLVM::AtomicRMWOp::create(
      b, LLVM::AtomicBinOp::add, address, b.i32(1),
      LLVM::AtomicOrdering::acq_rel, StringRef("device"));
  Value isLast = b.isEqual(b.add(before, 1), count);
  b.store(b.createOrFold<arith::ExtUIOp>(b.getI32Type(), isLast), flag, 4);
  auto reset = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  b.setInsertionPointToStart(reset.thenBlock());
  b.store(b.i32(0), address, 4);
}

Value cuda::isLastToArrive(Frame &frame, Counter counter, Value index,
                           Value count) {
  KernelBuilder &b = frame.b;
  Value address =
      b.offset(frame.workspace,
               b.add(b.mul(b.toI64(index), WorkspacePlan::kCounterBytes),
                     counter == Counter::Splits ? 0 : 4));
  Value flag =
      b.offset(frame.shared, planShared(frame.kernel, frame.schedule).flag);
  b.deviceFence();
  b.barrier();
  countIn(frame, address, count, flag);
  b.barrier();
  Value isLast = b.isEqual(b.load(b.getI32Type(), flag, 4), b.i32(1));
  b.deviceFence();
  return isLast;
}
