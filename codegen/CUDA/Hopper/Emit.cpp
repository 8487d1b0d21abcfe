//===- Emit.cpp - matmul kernels for sm_90a -------------------------------===//

#include "codegen/CUDA/Hopper/Emit.h"
#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

static constexpr llvm::StringLiteral kSharedName = "mp_shared";

/// Tensor maps by value, buffers, and the dynamic extent.
static SmallVector<Type> parameterTypes(Emission &e) {
  func::FuncOp func = e.kernel.func;
  MLIRContext *context = e.b.getContext();
  SmallVector<Type> types(e.plan.maps.size(),
                          LLVM::LLVMPointerType::get(context));
  types.append(func.getNumArguments() + func.getNumResults(),
               e.b.pointerType(kGlobalMemory));
  for (const Extent &extent : {e.plan.batch, e.plan.m, e.plan.k})
    if (extent.size >= 0)
      types.push_back(e.b.getI64Type());
  return types;
}

/// The 128 bytes of a map stand among the parameters, where TMA reads them.
static void markMap(Emission &e, LLVM::LLVMFuncOp func, unsigned argument) {
  Type bytes = LLVM::LLVMArrayType::get(e.b.getI8Type(), 128);
  func.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(),
                  TypeAttr::get(bytes));
  func.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                  e.b.getI64IntegerAttr(64));
  func.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(),
                  e.b.getUnitAttr());
}

static void setLaunchBounds(Emission &e, LLVM::LLVMFuncOp func) {
  func->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), e.b.getUnitAttr());
  func->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                e.b.getDenseI32ArrayAttr(
                    {static_cast<int32_t>(e.schedule.threads()), 1, 1}));
  func->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                e.b.getI32IntegerAttr(e.schedule.launchRegisters));
}

static LLVM::LLVMFuncOp createFunction(Emission &e) {
  MLIRContext *context = e.b.getContext();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          parameterTypes(e));
  auto func = LLVM::LLVMFuncOp::create(e.b, kFunctionName, type);
  for (unsigned i = 0; i < e.plan.maps.size(); ++i)
    markMap(e, func, i);
  setLaunchBounds(e, func);
  Block *entry = func.addEntryBlock(e.b);
  ArrayRef<BlockArgument> arguments = entry->getArguments();
  func::FuncOp kernel = e.kernel.func;
  unsigned buffers = kernel.getNumArguments() + kernel.getNumResults();
  llvm::append_range(e.maps, arguments.take_front(e.plan.maps.size()));
  arguments = arguments.drop_front(e.plan.maps.size());
  llvm::append_range(e.buffers, arguments.take_front(buffers));
  if (arguments.size() > buffers)
    e.size = arguments.back();
  e.b.setInsertionPointToStart(entry);
  return func;
}

/// Shared memory whose size the launch gives.
static void createShared(Emission &e) {
  auto bytes = LLVM::LLVMArrayType::get(e.b.getI8Type(), 0);
  LLVM::GlobalOp::create(e.b, bytes, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedName, Attribute(),
                         /*alignment=*/kAtomBytes, kSharedMemory);
}

static void emitPosition(Emission &e) {
  Value thread = NVVM::ThreadIdXOp::create(e.b, e.b.getI32Type());
  e.warpgroup = e.b.div(thread, kWarpgroup);
  e.thread = e.b.rem(thread, kWarpgroup);
  e.warp = e.b.div(e.thread, 32);
  e.lane = e.b.rem(thread, 32);
  e.shared = LLVM::AddressOfOp::create(e.b, e.b.pointerType(kSharedMemory),
                                       kSharedName);
}

static void emitConsumer(Emission &e) {
  e.consumer = e.b.sub(e.warpgroup, e.b.i32(1));
  NVVM::SetMaxRegisterOp::create(e.b, e.schedule.consumerRegisters,
                                 NVVM::SetMaxRegisterAction::increase);
  forTiles(e, {e.b.i32(0), e.b.i32(0)}, [&](RingPosition position) {
    emitEpilogue(e, emitProducts(e, position));
    return position;
  });
  endStores(e);
}

static void emitBody(Emission &e) {
  emitPosition(e);
  emitBarriers(e);
  emitExtents(e);
  Value loads = e.b.isEqual(e.warpgroup, e.b.i32(0));
  auto role = scf::IfOp::create(e.b, loads, /*withElseRegion=*/true);
  Operation *end = LLVM::ReturnOp::create(e.b, ValueRange{});
  e.b.setInsertionPointToStart(role.thenBlock());
  emitProducer(e);
  e.b.setInsertionPointToStart(role.elseBlock());
  emitConsumer(e);
  e.b.setInsertionPointAfter(end);
}

static void setGrid(Emission &e, ::mp::runtime::CudaKernel &launch) {
  const Extent *extents[] = {&e.plan.m, &e.plan.n, &e.plan.batch};
  for (int64_t i = 0; i < 3; ++i) {
    bool isDynamic = extents[i]->size >= 0;
    launch.grid.extent[i] =
        isDynamic ? -1 - extents[i]->size : extents[i]->factor;
    launch.grid.factor[i] = isDynamic ? extents[i]->factor : 1;
  }
  launch.grid.tile[0] = e.schedule.blockM();
  launch.grid.tile[1] = e.schedule.blockN;
  launch.grid.flat = true;
  launch.grid.blocksPerProcessor = e.schedule.blocks;
}

static EmittedKernel finish(Emission &e, OwningOpRef<ModuleOp> module) {
  EmittedKernel emitted;
  emitted.module = std::move(module);
  emitted.launch.name = kFunctionName;
  emitted.launch.block[0] = e.schedule.threads();
  emitted.launch.dynamicSharedBytes = e.plan.sharedBytes();
  setGrid(e, emitted.launch);
  emitted.maps.assign(e.plan.maps.begin(), e.plan.maps.end());
  emitted.launch.maps = emitted.maps.data();
  emitted.launch.mapCount = emitted.maps.size();
  return emitted;
}

std::optional<EmittedKernel> hopper::emit(const MatmulKernel &kernel,
                                          const Schedule &schedule,
                                          std::string &whyNot) {
  FailureOr<Plan> planned = plan(kernel, schedule, whyNot);
  if (failed(planned))
    return std::nullopt;
  func::FuncOp func = kernel.func;
  Location loc = func.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                     UnitAttr::get(loc.getContext()));
  Emission e(kernel, *planned, loc);
  e.b.setInsertionPointToStart(module->getBody());
  auto gpuModule = gpu::GPUModuleOp::create(e.b, "kernels");
  e.b.setInsertionPointToStart(gpuModule.getBody());
  createShared(e);
  createFunction(e);
  emitBody(e);
  return finish(e, std::move(module));
}

bool hopper::supports(const Chip &chip) { return chip.name == "sm_90a"; }

std::optional<EmittedKernel> hopper::emitFor(const MatmulKernel &kernel,
                                             const Chip &chip,
                                             std::string &whyNot) {
  int64_t processors = chip.multiprocessors;
  const Schedule &schedule = chooseSchedule(kernel, processors);
  if (leavesIdle(kernel, schedule, processors)) {
    whyNot = "the result has too few tiles; splitting k uses more of the chip";
    return std::nullopt;
  }
  return emit(kernel, schedule, whyNot);
}
