//===- Program.cpp - loading and launching through CUDA's driver ----------===//

#include "runtime/CUDA/Program.h"
#include "runtime/CUDA/TensorMaps.h"
#include <algorithm>

using namespace mp::runtime;
using namespace mp::runtime::cuda;

/// Beyond this a kernel must ask for its shared memory.
static constexpr uint32_t kStaticSharedLimit = 48 << 10;
/// The most blocks along x, and along y or z.
static constexpr int64_t kMaxX = 0x7fffffff, kMaxYZ = 65535;
/// Of cuModuleLoadDataEx: where to write what went wrong, and its size.
static constexpr int kErrorLog = 5, kErrorLogBytes = 6;

namespace {
/// Makes a context the thread's current one, for as long as this lives.
class ContextScope {
public:
  ContextScope(const Driver &driver, Context context) : driver(driver) {
    if (driver.getContext(&before) == kSuccess && before == context)
      return;
    result = driver.setContext(context);
    isChanged = result == kSuccess;
  }
  ~ContextScope() {
    if (isChanged)
      driver.setContext(before);
  }
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

  Result result = kSuccess;

private:
  const Driver &driver;
  Context before = nullptr;
  bool isChanged = false;
};
} // namespace

/// The extent of the problem along one dimension of the grid.
static int64_t extentOf(const CudaGrid &grid, int dimension,
                        const int64_t *sizes) {
  int64_t extent = grid.extent[dimension];
  return grid.factor[dimension] * (extent < 0 ? sizes[-1 - extent] : extent);
}

Blocks cuda::blocksOf(const CudaGrid &grid, const int64_t *sizes) {
  Blocks blocks{};
  for (int i = 0; i != 3; ++i)
    blocks.count[i] =
        (extentOf(grid, i, sizes) + grid.tile[i] - 1) / grid.tile[i];
  if (grid.flat)
    return {{blocks.total(), 1, 1}};
  return blocks;
}

static int64_t workspaceOf(const CudaKernel &kernel, const int64_t *sizes) {
  return kernel.workspaceBytes +
         kernel.workspacePerBlock * blocksOf(kernel.grid, sizes).total();
}

std::string cuda::architectureOf(const Driver &driver, int device,
                                 std::string &error) {
  Device handle;
  int major = 0, minor = 0;
  if (!driver.check(driver.deviceGet(&handle, device), "cuDeviceGet", error) ||
      !driver.check(driver.deviceAttribute(&major, kMajor, handle),
                    "cuDeviceGetAttribute", error) ||
      !driver.check(driver.deviceAttribute(&minor, kMinor, handle),
                    "cuDeviceGetAttribute", error))
    return {};
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

std::unique_ptr<Program> Program::load(const Driver &driver, int device,
                                       const CudaImage *images, size_t count,
                                       std::string &error) {
  std::unique_ptr<Program> program(new Program(driver));
  Device &handle = program->device;
  if (!driver.check(driver.deviceGet(&handle, device), "cuDeviceGet", error) ||
      !driver.check(driver.primaryContext(&program->context, handle),
                    "cuDevicePrimaryCtxRetain", error))
    return nullptr;
  ContextScope scope(driver, program->context);
  if (!driver.check(scope.result, "cuCtxSetCurrent", error))
    return nullptr;
  program->kernels.reserve(count);
  for (const CudaImage *image = images; image != images + count; ++image)
    if (!program->loadOne(*image, error))
      return nullptr;
  return program;
}

/// Loads code; what the driver's assembler says goes into `error`.
static Module loadModule(const Driver &driver, const void *code,
                         std::string &error) {
  char log[2048] = "";
  int options[] = {kErrorLog, kErrorLogBytes};
  // The size stands where the others have an address.
  void *values[] = {log, static_cast<char *>(nullptr) + sizeof log};
  Module module = nullptr;
  Result result = driver.loadModule(&module, code, 2, options, values);
  if (driver.check(result, "cuModuleLoadDataEx", error))
    return module;
  error += std::string("\n") + log;
  return nullptr;
}

/// A kernel that goes through its tiles itself needs no more blocks than run at
/// once.
bool Program::limitBlocks(Loaded &loaded, std::string &error) const {
  int32_t perProcessor = loaded.kernel.grid.blocksPerProcessor;
  if (!perProcessor)
    return true;
  int processors = 0;
  Result result = driver.deviceAttribute(&processors, kMultiprocessors, device);
  loaded.maxBlocks = int64_t(perProcessor) * processors;
  return driver.check(result, "cuDeviceGetAttribute", error);
}

bool Program::loadOne(const CudaImage &image, std::string &error) {
  const CudaKernel &kernel = image.kernel;
  std::string name = kernel.name;
  if (*std::min_element(kernel.grid.tile, kernel.grid.tile + 3) < 1) {
    error = "kernel " + name + " has a tile of no extent";
    return false;
  }
  Module module = loadModule(driver, image.code, error);
  if (!module)
    return false;
  std::vector<TensorMap> maps(kernel.maps, kernel.maps + kernel.mapCount);
  kernels.push_back({kernel, name, std::move(maps), module});
  if (!limitBlocks(kernels.back(), error))
    return false;
  Function &function = kernels.back().function;
  std::string what = "cuModuleGetFunction of " + name;
  Result result = driver.getFunction(&function, module, name.c_str());
  if (!driver.check(result, what.c_str(), error))
    return false;
  if (kernel.dynamicSharedBytes <= kStaticSharedLimit)
    return true;
  what = "setting the shared memory of " + name + " to " +
         std::to_string(kernel.dynamicSharedBytes) + " bytes";
  result = driver.setAttribute(function, kMaxDynamicShared,
                               int(kernel.dynamicSharedBytes));
  return driver.check(result, what.c_str(), error);
}

Program::~Program() {
  ContextScope scope(driver, context);
  for (const Loaded &loaded : kernels)
    driver.unloadModule(loaded.module);
}

int64_t Program::workspaceBytes(const int64_t *sizes) const {
  int64_t bytes = 0;
  for (const Loaded &loaded : kernels)
    bytes = std::max(bytes, workspaceOf(loaded.kernel, sizes));
  return bytes;
}

bool Program::isEmpty(const int64_t *sizes) const {
  return std::any_of(kernels.begin(), kernels.end(), [&](const Loaded &loaded) {
    return blocksOf(loaded.kernel.grid, sizes).total() == 0;
  });
}

bool Program::launch(const LaunchArguments &arguments,
                     std::string &error) const {
  ContextScope scope(driver, context);
  if (!driver.check(scope.result, "cuCtxSetCurrent", error))
    return false;
  return std::all_of(kernels.begin(), kernels.end(), [&](const Loaded &loaded) {
    return launchOne(loaded, arguments, error);
  });
}

namespace {
/// What cuLaunchKernel takes: tensor maps, buffers, sizes, workspace.
class Parameters {
public:
  bool addMaps(const Driver &driver, const std::vector<TensorMap> &maps,
               const LaunchArguments &arguments, std::string &error) {
    encoded.resize(maps.size());
    for (size_t i = 0; i != maps.size(); ++i) {
      void *address = arguments.buffers[maps[i].buffer];
      if (!encode(driver, maps[i], address, arguments.sizes, encoded[i], error))
        return false;
      addAddress(&encoded[i]);
    }
    return true;
  }

  void addValues(const LaunchArguments &arguments, void *const &workspace) {
    for (size_t i = 0; i != arguments.bufferCount; ++i)
      addAddress(arguments.buffers + i);
    for (size_t i = 0; i != arguments.sizeCount; ++i)
      addAddress(arguments.sizes + i);
    if (workspace)
      addAddress(&workspace);
  }

  void **get() { return addresses.data(); }

private:
  template <typename T>
  void addAddress(const T *value) {
    addresses.push_back(const_cast<void *>(static_cast<const void *>(value)));
  }

  std::vector<EncodedMap> encoded;
  std::vector<void *> addresses;
};
} // namespace

bool Program::launchOne(const Loaded &loaded, const LaunchArguments &arguments,
                        std::string &error) const {
  const CudaKernel &kernel = loaded.kernel;
  Blocks blocks = blocksOf(kernel.grid, arguments.sizes);
  if (loaded.maxBlocks)
    blocks.count[0] = std::min(blocks.count[0], loaded.maxBlocks);
  if (blocks.count[0] > kMaxX || blocks.count[1] > kMaxYZ ||
      blocks.count[2] > kMaxYZ) {
    error = "kernel " + loaded.name + " needs more blocks than a grid may have";
    return false;
  }
  int64_t bytes = workspaceOf(kernel, arguments.sizes);
  void *workspace = bytes ? arguments.workspace : nullptr;
  if (workspace &&
      !driver.check(driver.fill(reinterpret_cast<DevicePointer>(workspace), 0,
                                size_t(bytes), arguments.stream),
                    "cuMemsetD8Async", error))
    return false;
  Parameters parameters;
  if (!parameters.addMaps(driver, loaded.maps, arguments, error))
    return false;
  parameters.addValues(arguments, workspace);
  Result result = driver.launch(
      loaded.function, unsigned(blocks.count[0]), unsigned(blocks.count[1]),
      unsigned(blocks.count[2]), kernel.block[0], kernel.block[1],
      kernel.block[2], kernel.dynamicSharedBytes, arguments.stream,
      parameters.get(), nullptr);
  if (result == kSuccess)
    return true;
  return driver.check(result, ("cuLaunchKernel of " + loaded.name).c_str(),
                      error);
}
