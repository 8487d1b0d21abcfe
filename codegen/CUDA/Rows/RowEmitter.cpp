//===- RowEmitter.cpp - the function of a row kernel and its rows ---------===//

#include "codegen/CUDA/Rows/RowEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static constexpr unsigned kGlobalSpace = 1;

RowEmitter::RowEmitter(const RowKernel &kernel, const RowPlan &plan,
                       const RowSchedule &schedule)
    : kernel(kernel), plan(plan), schedule(schedule), source(kernel.func),
      module(ModuleOp::create(source.getLoc())),
      b(source.getLoc(), source.getContext()) {}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// The widest value that goes through shared memory.
static Type slotType(const RowPlan &plan, Builder &b) {
  for (const Sweep &sweep : plan.sweeps)
    for (const RowStage *stage : sweep.reductions)
      if (stage->combiner->getResult(0).getType().isInteger(64))
        return b.getI64Type();
  return b.getI32Type();
}

static int64_t countReductions(const RowPlan &plan) {
  int64_t count = 0;
  for (const Sweep &sweep : plan.sweeps)
    count += sweep.reductions.size();
  return count;
}

/// Parameters: buffers, rows if they are dynamic, the workspace if there is
/// one.
void RowEmitter::makeFunction() {
  Location loc = source.getLoc();
  (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                     b.getUnitAttr());
  b.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(b, "kernels");
  b.setInsertionPointToStart(gpuModule.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  SmallVector<Type> types(source.getNumArguments() + source.getNumResults(),
                          pointer);
  size_t buffers = types.size();
  types.append(sizesOf(), b.getI64Type());
  if (hasColumnSums())
    types.push_back(pointer);
  threads.threads = schedule.threads;
  threads.groups = schedule.groups;
  if (threads.needsShared() && plan.hasRowReductions())
    declareShared(b, loc, kSlots, slotType(plan, b),
                  countReductions(plan) * threads.warps());
  if (hasColumnSums()) {
    declareShared(b, loc, kLast, b.getI32Type(), 1);
    if (schedule.groups > 1)
      declareShared(b, loc, kColumns, b.getI32Type(),
                    groupStride() * schedule.groups);
  }
  func = gpu::GPUFuncOp::create(b, kKernelName, b.getFunctionType(types, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(schedule.blockThreads()), 1, 1}));
  for (size_t i = 0; i < buffers; ++i)
    func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                    b.getUnitAttr());
  for (size_t i = 0, e = source.getNumArguments(); i < e; ++i)
    func.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                    b.getUnitAttr());
  b.setInsertionPointToStart(&func.getBody().front());
}

static Value idOf(ImplicitLocOpBuilder &b, Value index) {
  return arith::IndexCastOp::create(b, b.getI64Type(), index);
}

void RowEmitter::setUp() {
  Value thread =
      idOf(b, gpu::ThreadIdOp::create(b, gpu::Dimension::x, nullptr));
  Value count = constantOf(b, schedule.threads);
  threads.thread = thread;
  group = arith::DivUIOp::create(b, thread, count);
  inRow = arith::RemUIOp::create(b, thread, count);
  rowBlock = idOf(b, gpu::BlockIdOp::create(b, gpu::Dimension::x, nullptr));
  rowBlocks = idOf(b, gpu::GridDimOp::create(b, gpu::Dimension::x, nullptr));
  tileBlock =
      schedule.tile < kernel.columns
          ? idOf(b, gpu::BlockIdOp::create(b, gpu::Dimension::y, nullptr))
          : constantOf(b, 0);
  size_t buffers = source.getNumArguments() + source.getNumResults();
  rows = hasDynamicRows() ? scaled(b, func.getArgument(buffers),
                                   kernel.dynamicFactor, Value())
                          : constantOf(b, kernel.rows);
  if (hasColumnSums())
    workspace = func.getArgument(buffers + sizesOf());
  for (const RowStage &stage : kernel.stages)
    for (auto [input, access] : inputsOf(stage))
      if (access == Access::Scalar)
        scalar(input);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// One row of each group. All threads of a warp stay together: those without a
/// row work on the last one and write nothing.
SmallVector<Value> RowEmitter::emitRow(Value wanted, Values columnSums) {
  bool isExact = !hasDynamicRows() && kernel.rows % schedule.blockRows() == 0;
  row = wanted;
  isRow = Value();
  if (!isExact) {
    isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, wanted, rows);
    Value last = arith::SubIOp::create(b, rows, constantOf(b, 1));
    row = arith::SelectOp::create(b, isRow, wanted, last);
  }
  rowValues.clear();
  makeChunks();
  for (unsigned i = 0, e = plan.sweeps.size(); i < e; ++i)
    runSweep(i, columnSums);
  storeRows();
  return columnSums;
}

/// Slots of shared memory are written again in the next row. With two sweeps
/// or more, a barrier of the next lies between any read and that.
static bool needsBarrier(const RowPlan &plan, const RowThreads &threads) {
  auto exchanges = llvm::count_if(plan.sweeps, [](const Sweep &sweep) {
    return !sweep.reductions.empty();
  });
  return threads.needsShared() && exchanges == 1;
}

/// Rows of a group, less those that no thread of the block has.
Value RowEmitter::stepsOfBlock() {
  Value begin = scaled(b, rowBlock, schedule.blockRows(), Value());
  Value left = arith::SubIOp::create(b, rows, begin);
  Value rounded =
      arith::AddIOp::create(b, left, constantOf(b, schedule.groups - 1));
  Value needed =
      arith::DivSIOp::create(b, rounded, constantOf(b, schedule.groups));
  return arith::MinSIOp::create(b, needed, constantOf(b, schedule.steps));
}

void RowEmitter::emitRowLoop() {
  Value first = scaled(b, rowBlock, schedule.blockRows(), group);
  Values sums = initialColumnSums();
  if (schedule.steps == 1)
    return storeColumnSums(emitRow(first, sums));
  auto loop = scf::ForOp::create(b, constantOf(b, 0), stepsOfBlock(),
                                 constantOf(b, schedule.rowUnroll), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value wanted = scaled(b, loop.getInductionVar(), schedule.groups, first);
    Values next(loop.getRegionIterArgs());
    for (int64_t i = 0; i < schedule.rowUnroll; ++i)
      next = emitRow(scaled(b, wanted, 1, constantOf(b, i * schedule.groups)),
                     next);
    if (needsBarrier(plan, threads))
      gpu::BarrierOp::create(b);
    if (!next.empty())
      scf::YieldOp::create(b, next);
  }
  storeColumnSums(Values(loop.getResults()));
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

::mp::runtime::CudaKernel RowEmitter::launch() {
  ::mp::runtime::CudaKernel launch{};
  launch.name = kKernelName.data();
  launch.grid.extent[0] = hasDynamicRows() ? -1 : kernel.rows;
  launch.grid.factor[0] = kernel.dynamicFactor;
  launch.grid.tile[0] = schedule.blockRows();
  launch.grid.extent[1] = kernel.columns;
  launch.grid.tile[1] = schedule.tile;
  launch.block[0] = schedule.blockThreads();
  launch.workspacePerBlock = hasColumnSums() ? 4 * regionWords() : 0;
  return launch;
}

EmittedKernel RowEmitter::emit() {
  makeFunction();
  setUp();
  emitRowLoop();
  if (hasColumnSums())
    finishColumns();
  gpu::ReturnOp::create(b);
  return {std::move(module), launch()};
}

FailureOr<EmittedKernel> mlir::mp::cuda::emitRows(const RowKernel &kernel,
                                                  const RowSchedule &schedule) {
  FailureOr<RowPlan> plan = planRows(kernel);
  if (failed(plan) || failed(verifyRowSchedule(kernel, *plan, schedule)))
    return failure();
  return RowEmitter(kernel, *plan, schedule).emit();
}

FailureOr<EmittedKernel> mlir::mp::cuda::emitRows(const RowKernel &kernel) {
  FailureOr<RowPlan> plan = planRows(kernel);
  if (failed(plan))
    return failure();
  return emitRows(kernel, chooseRowSchedule(kernel, *plan));
}
