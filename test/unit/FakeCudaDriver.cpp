//===- FakeCudaDriver.cpp - a CUDA driver that writes down its calls ------===//
//
// Stands in for libcuda.so.1 where there is no GPU. A kernel whose image says
// so runs on the host: "host:ADDRESS" is a function that gets the parameters.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct State {
  std::string log;
  /// The call that fails, and with what.
  std::string failing;
  int result = 0;
  void *current = nullptr;
};

using HostKernel = void (*)(const unsigned grid[3], void **parameters);
} // namespace

static void *pointerTo(uint64_t address) {
  return static_cast<char *>(nullptr) + address;
}

static State &state() {
  static State theState;
  return theState;
}

/// Writes a call down; its result.
template <typename... Values>
static int call(const char *name, const char *format = "", Values... values) {
  char text[512] = "";
  if constexpr (sizeof...(values) != 0)
    std::snprintf(text, sizeof text, format, values...);
  State &s = state();
  s.log += std::string(name) + text + "\n";
  return s.failing == name ? s.result : 0;
}

EXPORT const char *fakeLog() { return state().log.c_str(); }
EXPORT void fakeClear() { state() = {}; }
EXPORT void fakeFail(const char *name, int result) {
  state().failing = name;
  state().result = result;
}

EXPORT int cuInit(unsigned) { return call("cuInit"); }
EXPORT int cuGetErrorName(int, const char **name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
EXPORT int cuGetErrorString(int, const char **text) {
  *text = "as the test wants it";
  return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return call("cuDeviceGet", " %d", ordinal);
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 16 ? 4 : 0;
  return call("cuDeviceGetAttribute", " %d of %d", attribute, device);
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = pointerTo(0x100 + uint64_t(device));
  return call("cuDevicePrimaryCtxRetain", " %d", device);
}
EXPORT int cuCtxGetCurrent(void **context) {
  *context = state().current;
  return 0;
}
EXPORT int cuCtxSetCurrent(void *context) {
  state().current = context;
  return call("cuCtxSetCurrent", " %p", context);
}
EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned count,
                              int *options, void **values) {
  *module = const_cast<void *>(image);
  int result =
      call("cuModuleLoadDataEx", " %.20s", static_cast<const char *>(image));
  if (result && count == 2 && options[0] == 5)
    std::strcpy(static_cast<char *>(values[0]), "ptxas: line 1: bad");
  return result;
}
EXPORT int cuModuleUnload(void *) { return call("cuModuleUnload"); }
EXPORT int cuModuleGetFunction(void **function, void *module,
                               const char *name) {
  *function = module;
  return call("cuModuleGetFunction", " %s", name);
}
EXPORT int cuFuncSetAttribute(void *, int attribute, int value) {
  return call("cuFuncSetAttribute", " %d = %d", attribute, value);
}
EXPORT int cuMemsetD8Async(uint64_t address, uint8_t value, size_t count,
                           void *stream) {
  std::memset(pointerTo(address), value, count);
  return call("cuMemsetD8Async", " %zu bytes on %p", count, stream);
}
EXPORT int cuTensorMapEncodeTiled(uint64_t *map, int dataType, uint32_t rank,
                                  void *address, const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box,
                                  const uint32_t *, int interleave, int swizzle,
                                  int, int filling) {
  *map = reinterpret_cast<uint64_t>(address);
  return call("cuTensorMapEncodeTiled",
              " %u x %ux%u rows of %u bytes, box %ux%u, %d %d %d %d",
              unsigned(rank > 2 ? extents[2] : 1), unsigned(extents[1]),
              unsigned(extents[0]), unsigned(strides[0]), box[1], box[0],
              dataType, interleave, swizzle, filling);
}
EXPORT int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                          unsigned gridZ, unsigned blockX, unsigned blockY,
                          unsigned blockZ, unsigned shared, void *stream,
                          void **parameters, void **) {
  const char *image = static_cast<const char *>(function);
  if (std::strncmp(image, "host:", 5) == 0) {
    const unsigned grid[] = {gridX, gridY, gridZ};
    void *address = pointerTo(std::strtoull(image + 5, nullptr, 16));
    reinterpret_cast<HostKernel>(address)(grid, parameters);
  }
  return call("cuLaunchKernel", " %ux%ux%u of %ux%ux%u shared %u on %p", gridX,
              gridY, gridZ, blockX, blockY, blockZ, shared, stream);
}
