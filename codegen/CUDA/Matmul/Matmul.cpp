//===- Matmul.cpp - the CUDA kernel of a matmul ---------------------------===//

#include "codegen/CUDA/Matmul/Matmul.h"
#include "codegen/CUDA/Matmul/Epilogue.h"
#include "codegen/CUDA/Matmul/SharedMemory.h"
#include "codegen/CUDA/Matmul/SplitK.h"
#include "codegen/CUDA/Matmul/TileOrder.h"
#include "codegen/CUDA/Matmul/Workspace.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static constexpr llvm::StringLiteral kFunctionName = "mp_matmul";

int64_t Frame::elementBytes() const { return bytesOf(kernel.lhs.element); }

int64_t cuda::bytesOf(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

static bool isDynamic(const MatmulKernel &kernel) {
  return ShapedType::isDynamicShape(
      {kernel.batch, kernel.m, kernel.n, kernel.k});
}

namespace {
/// Builds one kernel.
class Emitter {
public:
  Emitter(const MatmulKernel &kernel, const MatmulSchedule &schedule)
      : kernel(kernel), schedule(schedule),
        b(functionOf(kernel).getLoc(), functionOf(kernel).getContext()) {}
  EmittedKernel emit();

private:
  gpu::GPUFuncOp createFunction();
  void annotate(gpu::GPUFuncOp function);
  void takeArguments(Frame &frame, gpu::GPUFuncOp function);
  void placeThread(Frame &frame);
  void emitBody(Frame &frame);
  Accumulators emitSums(Frame &frame);
  Accumulators emitLoop(Frame &frame, OperandSums sums);
  void describe(::mp::runtime::CudaKernel &launch);

  const MatmulKernel &kernel;
  const MatmulSchedule &schedule;
  KernelBuilder b;
  OwningOpRef<ModuleOp> module;
};
} // namespace

/// Dynamic shared memory: an array without a size, as the driver expects it.
static Value sharedMemory(KernelBuilder &b, gpu::GPUModuleOp module) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  StringRef name = "__dynamic_shmem__0";
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, type, /*isConstant=*/false,
                           LLVM::Linkage::External, name, Attribute(),
                           /*alignment=*/128, kSharedMemory);
  }
  return LLVM::AddressOfOp::create(b, b.pointerType(kSharedMemory), name);
}

gpu::GPUFuncOp Emitter::createFunction() {
  module = ModuleOp::create(b.getLoc());
  (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                     b.getUnitAttr());
  b.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(b, StringRef("mp_kernels"));
  b.setInsertionPointToStart(gpuModule.getBody());

  func::FuncOp func = kernel.func;
  size_t pointers = func.getNumArguments() + func.getNumResults();
  SmallVector<Type> types(pointers, b.pointerType(kGlobalMemory));
  if (isDynamic(kernel))
    types.push_back(b.getI64Type());
  if (planWorkspace(kernel, schedule).isNeeded())
    types.push_back(b.pointerType(kGlobalMemory));
  auto function =
      gpu::GPUFuncOp::create(b, kFunctionName, b.getFunctionType(types, {}));
  annotate(function);
  b.setInsertionPointToStart(&function.getBody().front());
  return function;
}

void Emitter::annotate(gpu::GPUFuncOp function) {
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({static_cast<int32_t>(schedule.threads()), 1, 1}));
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(schedule.resident));
  // Results are fresh buffers: neither overlaps another or an argument.
  size_t arguments = functionOf(kernel).getNumArguments();
  for (size_t i = 0; i < arguments + functionOf(kernel).getNumResults(); ++i) {
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                        b.getUnitAttr());
    if (i < arguments)
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                          b.getUnitAttr());
  }
}

void Emitter::takeArguments(Frame &frame, gpu::GPUFuncOp function) {
  ValueRange values = function.getArguments();
  size_t arguments = functionOf(kernel).getNumArguments();
  size_t results = functionOf(kernel).getNumResults();
  frame.arguments.assign(values.begin(), values.begin() + arguments);
  values = values.drop_front(arguments);
  frame.results.assign(values.begin(), values.begin() + results);
  values = values.drop_front(results);
  Value dynamic;
  if (isDynamic(kernel)) {
    Value size = arith::TruncIOp::create(b, b.getI32Type(), values.front());
    dynamic = b.mul(size, kernel.dynamicFactor);
    values = values.drop_front();
  }
  if (!values.empty())
    frame.workspace = values.front();
  auto sizeOf = [&](int64_t extent) {
    bool isFixed = !ShapedType::isDynamic(extent);
    return Size{extent, isFixed ? b.i32(extent) : dynamic};
  };
  frame.batch = sizeOf(kernel.batch);
  frame.m = sizeOf(kernel.m);
  frame.n = sizeOf(kernel.n);
  frame.k = sizeOf(kernel.k);
}

void Emitter::placeThread(Frame &frame) {
  frame.thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  frame.lane = b.rem(frame.thread, 32);
  frame.warp = b.div(frame.thread, 32);
  frame.warpRow = b.div(frame.warp, frame.warpColumns());
  frame.warpColumn = b.rem(frame.warp, frame.warpColumns());
}

/// The main loop over the steps of this block's split.
Accumulators Emitter::emitLoop(Frame &frame, OperandSums sums) {
  Value steps = b.ceilDiv(frame.k.value, schedule.blockK);
  if (schedule.splitK == 1)
    return emitMainloop(frame, b.i32(0), steps, sums);
  Value perSplit = b.ceilDiv(steps, schedule.splitK);
  Value first = b.minOf(b.mul(frame.tile.split, perSplit), steps);
  Value last = b.minOf(b.add(first, perSplit), steps);
  return emitMainloop(frame, first, last, sums);
}

/// Sums of an operand are needed from one row or column of tiles only: the
/// others have a loop without them.
Accumulators Emitter::emitSums(Frame &frame) {
  OperandSums sums;
  for (const SideSum &sum : kernel.sums) {
    sums.lhs |= sum.over == SideSum::Over::LhsOverK;
    sums.rhs |= sum.over == SideSum::Over::RhsOverK;
  }
  if (sums.lhs == sums.rhs)
    return emitLoop(frame, sums);
  Value tile = sums.lhs ? frame.tile.columnTile : frame.tile.rowTile;
  int64_t floats = schedule.warpM * schedule.warpN / 32 +
                   (sums.lhs ? schedule.warpM / 4 : schedule.warpN / 2);
  auto summing =
      scf::IfOp::create(b, SmallVector<Type>(floats, b.getF32Type()),
                        b.isEqual(tile, b.i32(0)), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(summing.thenBlock());
  Accumulators result = emitLoop(frame, sums);
  scf::YieldOp::create(b, result.values);
  b.setInsertionPointToStart(summing.elseBlock());
  SmallVector<Value> plain = emitLoop(frame, {}).values;
  plain.resize(floats, b.f32(0));
  scf::YieldOp::create(b, plain);
  result.values.assign(summing.result_begin(), summing.result_end());
  return result;
}

void Emitter::emitBody(Frame &frame) {
  Accumulators accumulators = emitSums(frame);
  auto store = [&](const Accumulators &total) {
    storeOperandSums(frame, total);
    emitEpilogue(frame, total);
  };
  if (schedule.splitK == 1)
    store(accumulators);
  else
    joinSplits(frame, accumulators, store);
}

void Emitter::describe(::mp::runtime::CudaKernel &launch) {
  launch.name = kFunctionName.data();
  launch.grid.flat = true;
  int64_t extents[] = {kernel.m, kernel.n, kernel.batch};
  int64_t tiles[] = {schedule.blockM, schedule.blockN, 1};
  for (int i = 0; i < 3; ++i) {
    bool fixed = !ShapedType::isDynamic(extents[i]);
    launch.grid.extent[i] = fixed ? extents[i] : -1;
    launch.grid.factor[i] = fixed ? 1 : kernel.dynamicFactor;
    launch.grid.tile[i] = tiles[i];
  }
  launch.grid.factor[2] *= schedule.splitK;
  launch.block[0] = schedule.threads();
  launch.dynamicSharedBytes = planShared(kernel, schedule).total;
  launch.workspacePerBlock = planWorkspace(kernel, schedule).bytesPerBlock();
}

EmittedKernel Emitter::emit() {
  gpu::GPUFuncOp function = createFunction();
  Frame frame(b, kernel, schedule);
  takeArguments(frame, function);
  placeThread(frame);
  frame.shared = sharedMemory(b, function->getParentOfType<gpu::GPUModuleOp>());
  emitTileOrder(frame);
  emitBody(frame);
  gpu::ReturnOp::create(b);
  EmittedKernel result;
  describe(result.launch);
  result.module = std::move(module);
  return result;
}

FailureOr<EmittedKernel> cuda::emitMatmul(const MatmulKernel &kernel,
                                          const MatmulSchedule &schedule) {
  std::string reason = whyUnfit(schedule, kernel);
  if (!reason.empty())
    return emitError(functionOf(kernel).getLoc())
           << "schedule " << schedule.str() << " does not fit: " << reason;
  return Emitter(kernel, schedule).emit();
}
