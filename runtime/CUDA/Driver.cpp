//===- Driver.cpp - opening CUDA's driver ---------------------------------===//

#include "runtime/CUDA/Driver.h"
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>

using namespace mp::runtime::cuda;

static constexpr const char *kLibrary = "libcuda.so.1";
static constexpr const char *kVariable = "MPOPT_CUDA_DRIVER";

/// Looks a function up; false if a needed one is missing.
template <typename T>
static bool bind(T &function, void *library, const char *symbol, bool needed,
                 std::string &error) {
  function = reinterpret_cast<T>(dlsym(library, symbol));
  if (function || !needed)
    return true;
  error = std::string("the CUDA driver has no ") + symbol +
          "; update the NVIDIA driver";
  return false;
}

static bool bindAll(Driver &driver, void *library, std::string &error) {
#define CUDA_FUNCTION(NAME, SYMBOL, NEEDED, PARAMETERS)                        \
  if (!bind(driver.NAME, library, #SYMBOL, NEEDED, error))                     \
    return false;
#include "runtime/CUDA/Functions.def"
  return true;
}

const Driver *mp::runtime::cuda::openDriver(const char *library,
                                            std::string &error) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    error = std::string("cannot open the CUDA driver: ") + (why ? why : "") +
            "; install the NVIDIA driver or run on the CPU";
    return nullptr;
  }
  auto driver = std::make_unique<Driver>();
  if (!bindAll(*driver, handle, error) ||
      !driver->check(driver->init(0), "cuInit", error))
    return nullptr;
  return driver.release();
}

const Driver *Driver::get(std::string &error) {
  static std::once_flag once;
  static const Driver *driver;
  static std::string failure;
  std::call_once(once, [] {
    const char *named = std::getenv(kVariable);
    driver = openDriver(named && *named ? named : kLibrary, failure);
  });
  if (!driver)
    error = failure;
  return driver;
}

bool Driver::check(Result result, const char *what, std::string &error) const {
  if (result == kSuccess)
    return true;
  const char *name = nullptr, *text = nullptr;
  if (errorName(result, &name) != kSuccess || !name)
    name = "unknown error";
  if (errorString(result, &text) != kSuccess || !text)
    text = "";
  error = std::string(what) + " failed: " + name + " (" +
          std::to_string(result) + ") " + text;
  return false;
}
