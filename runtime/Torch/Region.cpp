//===- Region.cpp - the operator mpopt::region ----------------------------===//
//
// Runs the kernel of a text on tensors, through LibTorch's stable ABI: one
// binary for PyTorch 2.11 and later. The schema, which carries tags that the
// ABI of 2.11 cannot state, and the fake kernel are the Python package's.
//
//===----------------------------------------------------------------------===//

#include "runtime/CUDA/Program.h"
#include "runtime/Torch/Call.h"
#include "runtime/Torch/Compilers.h"
#include "runtime/Torch/Scratch.h"
#include <dlfcn.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

using namespace mp;
using mp::runtime::CpuKernel;
using mp::runtime::Entry;
using mp::runtime::Registry;
using torch::stable::Tensor;

static Entry &entryOf(const std::string &kernel) {
  std::string error;
  Entry *entry = Registry::get().find(kernel, error);
  STD_TORCH_CHECK(entry, "mpopt::region: ", error);
  return *entry;
}

namespace {
/// One phase of a kernel, as the thread pool runs parts of it.
struct Phase {
  const CpuKernel &kernel;
  int32_t number;
  void *const *buffers;
  const int64_t *sizes;
  void *scratch;
  int32_t threads;

  static void run(int64_t begin, int64_t end, void *self) {
    const auto &phase = *static_cast<const Phase *>(self);
    phase.kernel.run(phase.number, begin, end, phase.buffers, phase.sizes,
                     phase.scratch, phase.threads);
  }
};
} // namespace

static void runPhases(const CpuKernel &kernel, const launch::Call &call,
                      int32_t threads, void *scratch) {
  for (int32_t i = 0; i != kernel.phases; ++i) {
    Phase phase{kernel, i, call.buffers.data(), call.sizes, scratch, threads};
    int64_t tasks = kernel.tasks(i, call.sizes, threads);
    if (tasks == 1 || threads == 1)
      Phase::run(0, tasks, &phase);
    else if (tasks > 1)
      STABLE_TORCH_ERROR_CODE_CHECK(
          torch_parallel_for(0, tasks, 1, Phase::run, &phase));
  }
}

static std::vector<Tensor> regionOnCpu(const std::vector<Tensor> &inputs,
                                       const std::string &text,
                                       const std::vector<int64_t> &sizes) {
  Entry &entry = entryOf(text);
  std::string error;
  const CpuKernel *kernel = launch::cpuKernel(entry, error);
  STD_TORCH_CHECK(kernel, "mpopt::region: ", error);
  launch::Call call(entry, inputs, sizes, launch::Call::Byte);
  auto threads = int32_t(torch::stable::get_num_threads());
  int64_t bytes = kernel->scratchBytes(call.sizes, threads);
  void *scratch = bytes ? launch::scratch(size_t(bytes)) : nullptr;
  STD_TORCH_CHECK(scratch || !bytes, "mpopt::region: no memory for ", bytes,
                  " bytes of scratch");
  runPhases(*kernel, call, threads, scratch);
  return std::move(call.results);
}

/// The current stream of PyTorch. The function is in a library that a PyTorch
/// for the CPU does not have.
static runtime::cuda::Stream currentStream(int32_t device) {
  using Get = AOTITorchError (*)(int32_t, void **);
  static const auto get = [] {
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    const char *name = "aoti_torch_get_current_cuda_stream";
    return library ? reinterpret_cast<Get>(dlsym(library, name)) : nullptr;
  }();
  STD_TORCH_CHECK(get, "mpopt::region: this PyTorch has no CUDA");
  void *stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(get(device, &stream));
  return static_cast<runtime::cuda::Stream>(stream);
}

/// Bytes on the device, of PyTorch's allocator: so they are safe to use on the
/// stream, and in a graph that is being captured.
static Tensor deviceBytes(const Tensor &like, int64_t bytes) {
  const int64_t stride = 1;
  AtenTensorHandle handle;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      1, &bytes, &stride, aoti_torch_dtype_uint8(),
      aoti_torch_device_type_cuda(), like.get_device_index(), &handle));
  return Tensor(handle);
}

static std::vector<Tensor> regionOnCuda(const std::vector<Tensor> &inputs,
                                        const std::string &text,
                                        const std::vector<int64_t> &sizes) {
  Entry &entry = entryOf(text);
  STD_TORCH_CHECK(!inputs.empty(), "mpopt::region: a kernel without inputs");
  int32_t device = inputs[0].get_device_index();
  std::string error;
  const auto *program = launch::cudaProgram(entry, device, error);
  STD_TORCH_CHECK(program, "mpopt::region: ", error);
  launch::Call call(entry, inputs, sizes, launch::Call::Vector);
  if (program->isEmpty(call.sizes)) {
    for (Tensor &result : call.results)
      torch::stable::zero_(result);
    return std::move(call.results);
  }
  int64_t bytes = program->workspaceBytes(call.sizes);
  std::vector<Tensor> workspace;
  if (bytes)
    workspace.push_back(deviceBytes(inputs[0], bytes));
  runtime::cuda::LaunchArguments arguments{
      call.buffers.data(),
      call.buffers.size(),
      call.sizes,
      call.sizeCount,
      bytes ? workspace[0].mutable_data_ptr() : nullptr,
      currentStream(device)};
  STD_TORCH_CHECK(program->launch(arguments, error), "mpopt::region: ", error);
  return std::move(call.results);
}

STABLE_TORCH_LIBRARY_IMPL(mpopt, CPU, m) {
  m.impl("region", TORCH_BOX(&regionOnCpu));
}

STABLE_TORCH_LIBRARY_IMPL(mpopt, CUDA, m) {
  m.impl("region", TORCH_BOX(&regionOnCuda));
}
