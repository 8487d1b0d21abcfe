//===- EmulatedKernels.cpp - kernels of the update as host functions ------===//
//
// Lets the fake driver run them in the emulator: a test asks for the address of
// a kernel by its line, says "host:ADDRESS" in its image, and names the memory
// that kernels may touch.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Update/Text.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "test/emulator/Emulator.h"
#include <array>
#include <utility>

using namespace mlir;
using namespace mlir::mp;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct Emulated {
  std::unique_ptr<emulator::Kernel> kernel;
  emulator::Dim3 block;
  std::vector<bool> isPointer; ///< by parameter
};

using HostKernel = void (*)(const unsigned grid[3], void **parameters);
constexpr size_t kSlots = 64;
} // namespace

static std::vector<Emulated> &kernels() {
  static std::vector<Emulated> all;
  return all;
}
static std::vector<emulator::Argument> &buffers() {
  static std::vector<emulator::Argument> all;
  return all;
}
static std::string &faults() {
  static std::string text;
  return text;
}

static void run(size_t slot, const unsigned grid[3], void **parameters) {
  Emulated &emulated = kernels()[slot];
  emulator::Launch launch;
  launch.grid = {grid[0], grid[1], grid[2]};
  launch.block = emulated.block;
  launch.buffers = buffers();
  for (size_t i = 0; i < emulated.isPointer.size(); ++i) {
    // Numbers have eight bytes, as addresses.
    int64_t word = 0;
    std::memcpy(&word, parameters[i], sizeof word);
    launch.args.push_back(
        emulated.isPointer[i]
            ? emulator::Argument::address(*static_cast<void **>(parameters[i]))
            : emulator::Argument::scalar(word));
  }
  emulator::Report report = emulated.kernel->run(launch);
  if (!report.clean())
    faults() += report.text();
}

template <size_t slot>
static void runSlot(const unsigned grid[3], void **parameters) {
  run(slot, grid, parameters);
}

template <size_t... slots>
static HostKernel functionOf(size_t slot, std::index_sequence<slots...>) {
  static constexpr std::array<HostKernel, sizeof...(slots)> table = {
      runSlot<slots>...};
  return table[slot];
}

/// The address of the kernel that a line names; 0 if it names none.
EXPORT uint64_t emulatedKernel(const char *text) {
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto emitted = cuda::emitFromText(context, text);
  if (failed(emitted) || kernels().size() == kSlots)
    return 0;
  Emulated emulated;
  emulated.block = {emitted->launch.block[0]};
  emitted->module->walk([&](gpu::GPUFuncOp func) {
    for (Type type : func.getArgumentTypes())
      emulated.isPointer.push_back(isa<LLVM::LLVMPointerType>(type));
  });
  if (failed(cuda::lowerToNVVM(*emitted->module, *cuda::findChip("sm_80"))))
    return 0;
  auto kernel = emulator::Kernel::fromMLIR(emitted->module->getOperation());
  if (!kernel) {
    faults() += llvm::toString(kernel.takeError());
    return 0;
  }
  emulated.kernel = std::move(*kernel);
  size_t slot = kernels().size();
  kernels().push_back(std::move(emulated));
  return reinterpret_cast<uint64_t>(
      functionOf(slot, std::make_index_sequence<kSlots>()));
}

/// Kernels may read and write these bytes from now on.
EXPORT void emulatedMemory(void *data, size_t bytes) {
  buffers().push_back(emulator::Argument::output(data, bytes));
}
EXPORT void emulatedForget() { buffers().clear(); }
/// What kernels have done wrong; empty if nothing.
EXPORT const char *emulatedFaults() { return faults().c_str(); }
