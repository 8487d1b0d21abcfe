//===- Compilers.cpp - the border to the Python package -------------------===//
//
// Plain C functions, called through ctypes. Those that can fail return 0 and
// leave the reason in `mpoptError`.
//
//===----------------------------------------------------------------------===//

#include "runtime/Torch/Compilers.h"
#include "runtime/CUDA/Program.h"
#include "runtime/Torch/Call.h"

using namespace mp;
using namespace mp::runtime;

#define MPOPT_EXPORT extern "C" __attribute__((visibility("default")))

static std::atomic<launch::CompileCpu> compileCpu{nullptr};
static std::atomic<launch::CompileCuda> compileCuda{nullptr};
/// What the last failing call of this thread said.
static thread_local std::string failure;

const CpuKernel *launch::cpuKernel(Entry &entry, std::string &error) {
  if (const CpuKernel *kernel = entry.cpu.load(std::memory_order_acquire))
    return kernel;
  // Without a lock: the compiler takes Python's, and its caller may hold that.
  CompileCpu compile = compileCpu.load();
  failure = "no compiler is registered; import mpopt before running the graph";
  const CpuKernel *kernel =
      compile ? compile(entry.text.data(), entry.text.size()) : nullptr;
  if (!kernel) {
    error = failure;
    return nullptr;
  }
  entry.cpu.store(kernel, std::memory_order_release);
  return kernel;
}

const cuda::Program *launch::cudaProgram(Entry &entry, int device,
                                         std::string &error) {
  if (device < 0 || device >= Entry::kMaxDevices) {
    error = "no device has the number " + std::to_string(device);
    return nullptr;
  }
  std::atomic<const cuda::Program *> &slot = entry.gpu[size_t(device)];
  if (const cuda::Program *program = slot.load(std::memory_order_acquire))
    return program;
  CompileCuda compile = compileCuda.load();
  failure = "no compiler is registered; import mpopt before running the graph";
  if (!compile || !compile(entry.text.data(), entry.text.size(), device)) {
    error = failure;
    return nullptr;
  }
  return slot.load(std::memory_order_acquire);
}

MPOPT_EXPORT void mpoptSetCompilers(launch::CompileCpu cpu,
                                    launch::CompileCuda cuda) {
  compileCpu = cpu;
  compileCuda = cuda;
}

/// Says why a compiler returns nothing.
MPOPT_EXPORT void mpoptFail(const char *why) { failure = why; }

MPOPT_EXPORT const char *mpoptError() { return failure.c_str(); }

MPOPT_EXPORT int64_t mpoptRegionCopies() { return launch::Call::copies(); }

/// Compiles the kernel of a text for the CPU unless it is compiled.
MPOPT_EXPORT int mpoptPrepareCpu(const char *text, size_t length) {
  std::string error;
  Entry *entry = Registry::get().find({text, length}, error);
  if (entry && launch::cpuKernel(*entry, error))
    return 1;
  failure = error;
  return 0;
}

/// The same for a GPU.
MPOPT_EXPORT int mpoptPrepareCuda(const char *text, size_t length, int device) {
  std::string error;
  Entry *entry = Registry::get().find({text, length}, error);
  if (entry && launch::cudaProgram(*entry, device, error))
    return 1;
  failure = error;
  return 0;
}

/// Loads the code of a text's kernels on a device.
MPOPT_EXPORT int mpoptLoadCuda(const char *text, size_t length, int device,
                               const cuda::CudaImage *images, size_t count) {
  std::string error;
  Entry *entry = Registry::get().find({text, length}, error);
  const cuda::Driver *driver = entry ? cuda::Driver::get(error) : nullptr;
  std::unique_ptr<cuda::Program> program =
      driver ? cuda::Program::load(*driver, device, images, count, error)
             : nullptr;
  if (!program || device < 0 || device >= Entry::kMaxDevices) {
    failure = error;
    return 0;
  }
  const cuda::Program *none = nullptr, *loaded = program.release();
  // Another thread may have been faster; its program may run already.
  if (!entry->gpu[size_t(device)].compare_exchange_strong(none, loaded))
    delete loaded;
  return 1;
}

/// "sm_90" of a device into `name`.
MPOPT_EXPORT int mpoptCudaArchitecture(int device, char *name,
                                       size_t capacity) {
  std::string error;
  const cuda::Driver *driver = cuda::Driver::get(error);
  std::string found =
      driver ? cuda::architectureOf(*driver, device, error) : std::string();
  if (found.empty() || found.size() >= capacity) {
    failure = error;
    return 0;
  }
  found.copy(name, found.size());
  name[found.size()] = 0;
  return 1;
}

//===----------------------------------------------------------------------===//
// Kernels that are no regions
//===----------------------------------------------------------------------===//

/// Loads kernels on a device for `mpoptLaunch`; they stay for good. Null on an
/// error.
MPOPT_EXPORT const cuda::Program *
mpoptLoadProgram(int device, const cuda::CudaImage *images, size_t count) {
  std::string error;
  const cuda::Driver *driver = cuda::Driver::get(error);
  std::unique_ptr<cuda::Program> program =
      driver ? cuda::Program::load(*driver, device, images, count, error)
             : nullptr;
  failure = error;
  return program.release();
}

/// Launches them with these addresses, and numbers of 8 bytes each. A grid may
/// depend on the numbers; the kernel may leave the last ones unread.
MPOPT_EXPORT int mpoptLaunch(const cuda::Program *program, void *const *buffers,
                             size_t bufferCount, const int64_t *numbers,
                             size_t numberCount, void *stream) {
  std::string error;
  cuda::LaunchArguments arguments{buffers, bufferCount,
                                  numbers, numberCount,
                                  nullptr, static_cast<cuda::Stream>(stream)};
  if (program->launch(arguments, error))
    return 1;
  failure = error;
  return 0;
}
