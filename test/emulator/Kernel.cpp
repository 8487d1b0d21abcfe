//===- Kernel.cpp - kernels compiled for the host -------------------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/Optimize/Optimize.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/Numerics.h"
#include "test/emulator/HopperOperations.h"
#include "test/emulator/Machine.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <sys/mman.h>

using namespace llvm;
using namespace mlir::mp::emulator;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

mlir::mp::emulator::Argument
mlir::mp::emulator::Argument::input(const void *data, size_t bytes,
                                    StringRef name) {
  mlir::mp::emulator::Argument argument;
  argument.kind = Kind::Buffer;
  argument.data = const_cast<void *>(data);
  argument.size = bytes;
  argument.name = name.str();
  return argument;
}

mlir::mp::emulator::Argument
mlir::mp::emulator::Argument::output(void *data, size_t bytes, StringRef name) {
  mlir::mp::emulator::Argument argument = input(data, bytes, name);
  argument.isWritable = true;
  return argument;
}

mlir::mp::emulator::Argument
mlir::mp::emulator::Argument::address(const void *data) {
  return input(data, 0, "");
}

mlir::mp::emulator::Argument
mlir::mp::emulator::Argument::tensorMap(const TensorMap &map) {
  mlir::mp::emulator::Argument argument;
  argument.kind = Kind::TensorMap;
  argument.bytes.resize(sizeof map);
  std::memcpy(argument.bytes.data(), &map, sizeof map);
  return argument;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// More than any block has, so that what lies just outside is not mapped to
/// anything else.
static constexpr size_t sharedCapacity = 256 << 10;

namespace {
/// Memory whose addresses fit 32 bits, as those of shared memory do.
class SharedMemory {
public:
  SharedMemory() {
    void *mapped = mmap(nullptr, sharedCapacity, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (mapped == MAP_FAILED)
      report_fatal_error("emulator: no memory below 4 GiB for a block");
    memory = static_cast<char *>(mapped);
  }
  ~SharedMemory() { munmap(memory, sharedCapacity); }
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  char *get() const { return memory; }

private:
  char *memory;
};
} // namespace

struct Kernel::Impl {
  SharedMemory shared;
  Retargeted code;
  std::unique_ptr<orc::LLJIT> jit;
  std::unique_ptr<Machine> machine;
};

Kernel::Kernel(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Kernel::~Kernel() = default;

StringRef Kernel::name() const { return impl->code.kernel; }
size_t Kernel::staticSharedBytes() const {
  return impl->code.staticSharedBytes;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// The machine that runs. Kernels are not thread-safe, but several may be used
/// in turn, and by several threads each its own.
static thread_local Machine *running = nullptr;

static void operationFromCode(uint32_t operation, uint32_t site,
                              const char *arguments, char *results) {
  running->runOperation(operation, site, arguments, results);
}

static char *accessFromCode(char *address, uint32_t bytes, uint32_t align,
                            uint32_t flags, uint32_t site) {
  return running->runAccess(address, bytes, align, flags, site);
}

/// A copy in a context of its own, which the JIT takes over.
static Expected<orc::ThreadSafeModule> copyOf(const Module &module) {
  SmallVector<char, 0> bitcode;
  raw_svector_ostream os(bitcode);
  WriteBitcodeToFile(module, os);
  auto context = std::make_unique<LLVMContext>();
  auto copy = parseBitcodeFile(
      MemoryBufferRef(StringRef(bitcode.data(), bitcode.size()), "kernel"),
      *context);
  if (!copy)
    return copy.takeError();
  return orc::ThreadSafeModule(std::move(*copy), std::move(context));
}

static Error checkOperations(const Retargeted &code) {
  for (const std::string &name : code.operations)
    if (!findOperation(name))
      return createStringError("cannot emulate llvm.nvvm." + name);
  return Error::success();
}

/// What compiled code calls to round to bf16 where the host cannot; libgcc has
/// it only since version 13.
static __bf16 roundToBF16(float value) {
  uint16_t bits = mpopt::f32ToBF16(value);
  __bf16 result;
  std::memcpy(&result, &bits, sizeof bits);
  return result;
}

static Expected<std::unique_ptr<orc::LLJIT>> makeJit() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  // One baseline for all machines: the newer narrowing to bf16 flushes
  // denormals, so that results would depend on where a test runs.
  if (target->getTargetTriple().isX86())
    target->addFeatures({"-avx512bf16"});
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
  if (!jit)
    return jit.takeError();
  orc::SymbolMap symbols;
  auto define = [&](StringRef name, auto *function) {
    symbols[(*jit)->mangleAndIntern(name)] = {
        orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported};
  };
  define(operationHook, operationFromCode);
  define(accessHook, accessFromCode);
  define("__truncsfbf2", roundToBF16);
  if (Error error = (*jit)->getMainJITDylib().define(
          orc::absoluteSymbols(std::move(symbols))))
    return std::move(error);
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  return jit;
}

Expected<std::unique_ptr<Kernel>> Kernel::fromLLVM(const Module &module,
                                                   const LoadOptions &options) {
  auto impl = std::make_unique<Impl>();
  auto jit = makeJit();
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);
  auto copy = copyOf(module);
  if (!copy)
    return copy.takeError();
  Error failed = copy->withModuleDo([&](Module &own) -> Error {
    auto code = retarget(own, reinterpret_cast<uint64_t>(impl->shared.get()),
                         options.kernel);
    if (!code)
      return code.takeError();
    impl->code = std::move(*code);
    own.setDataLayout(impl->jit->getDataLayout());
    if (Error error = checkOperations(impl->code))
      return error;
    // Little is worth the time: code runs for milliseconds.
    mlir::mp::optimize(own, OptimizationLevel::O1);
    return Error::success();
  });
  if (failed)
    return std::move(failed);
  if (Error error = impl->jit->addIRModule(std::move(*copy)))
    return std::move(error);
  auto entry = impl->jit->lookup(entryName);
  if (!entry)
    return entry.takeError();
  impl->machine =
      std::make_unique<Machine>(impl->code, entry->toPtr<void (*)(char **)>(),
                                impl->shared.get(), sharedCapacity);
  return std::unique_ptr<Kernel>(new Kernel(std::move(impl)));
}

Expected<std::unique_ptr<Kernel>> Kernel::fromMLIR(mlir::Operation *op,
                                                   const LoadOptions &options) {
  mlir::OwningOpRef<mlir::Operation *> clone(op->clone());
  auto module = dyn_cast<mlir::ModuleOp>(clone.get());
  if (!module)
    return createStringError("the emulator takes a module with a gpu.module");
  hopper::replaceInlinePTX(module);
  LLVMContext context;
  mlir::mp::cuda::LoweringOptions lowering;
  if (!options.libdevice.empty())
    lowering.libdevice.push_back(options.libdevice);
  auto llvmModule = mlir::mp::cuda::translateToLLVM(
      module, *mlir::mp::cuda::findChip("sm_90a"), context, lowering);
  if (failed(llvmModule))
    return createStringError("the kernel does not translate to LLVM IR");
  return fromLLVM(**llvmModule, options);
}

Expected<std::unique_ptr<Kernel>> Kernel::fromText(StringRef text,
                                                   const LoadOptions &options) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module =
      parseIR(MemoryBufferRef(text, "kernel"), error, context);
  if (!module)
    return createStringError("cannot read the kernel: " +
                             error.getMessage().str());
  return fromLLVM(*module, options);
}

Report Kernel::run(const Launch &launch, Copies copies) {
  running = impl->machine.get();
  Report report = impl->machine->run(launch, copies);
  running = nullptr;
  return report;
}
