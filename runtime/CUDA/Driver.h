//===- Driver.h - CUDA's driver, found at run time --------------*- C++ -*-===//
//
// The functions of libcuda that kernels are loaded and launched with. Nothing
// links CUDA: the library is opened when a kernel for a GPU is first loaded, so
// the same binary works where there is none. The types are those of cuda.h,
// whose ABI is fixed.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_CUDA_DRIVER_H
#define RUNTIME_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace mp::runtime::cuda {

using Result = int;
using Device = int;
using Context = struct OpaqueContext *;
using Module = struct OpaqueModule *;
using Function = struct OpaqueFunction *;
using Stream = struct OpaqueStream *;
using DevicePointer = uint64_t;

/// CUtensorMap: what the tensor memory accelerator knows of a matrix.
struct alignas(64) EncodedMap {
  uint64_t opaque[16];
};

inline constexpr Result kSuccess = 0;

/// Values of CUfunction_attribute and CUdevice_attribute.
inline constexpr int kMaxDynamicShared = 8;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kMajor = 75, kMinor = 76;

struct Driver {
  // NOLINTBEGIN(bugprone-macro-parentheses): a declarator takes none
#define CUDA_FUNCTION(NAME, SYMBOL, NEEDED, PARAMETERS)                        \
  Result(*NAME) PARAMETERS;
#include "runtime/CUDA/Functions.def"
  // NOLINTEND(bugprone-macro-parentheses)

  /// The driver of this process, opened by the first call; null with an `error`
  /// that says what is missing. The environment variable MPOPT_CUDA_DRIVER
  /// names another library.
  static const Driver *get(std::string &error);

  /// Whether `result` is success; else puts what failed and why into `error`.
  bool check(Result result, const char *what, std::string &error) const;
};

/// Opens a driver's library; null with an `error`.
const Driver *openDriver(const char *library, std::string &error);

} // namespace mp::runtime::cuda

#endif // RUNTIME_CUDA_DRIVER_H
