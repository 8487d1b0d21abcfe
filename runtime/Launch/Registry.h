//===- Registry.h - the kernels of this process by their text ---*- C++ -*-===//
//
// Kernels are found by the text that a compiled graph carries, so a graph that
// comes from a cache of PyTorch works in any process. Looking up takes no lock;
// what is in the table stays there, at the same address.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_LAUNCH_REGISTRY_H
#define RUNTIME_LAUNCH_REGISTRY_H

#include "runtime/Kernel.h"
#include "runtime/Launch/Signature.h"
#include <array>
#include <atomic>
#include <mutex>

namespace mp::runtime {

namespace cuda {
class Program;
} // namespace cuda

/// A kernel: its text, and what has been made of it so far.
struct Entry {
  std::string text;
  Signature signature;
  /// Null until it is compiled.
  std::atomic<const CpuKernel *> cpu{nullptr};
  static constexpr int kMaxDevices = 64;
  /// For each device. Null until it is compiled and loaded there.
  std::array<std::atomic<const cuda::Program *>, kMaxDevices> gpu{};
  Entry *next = nullptr;
};

class Registry {
public:
  /// The one of this process.
  static Registry &get();

  /// The entry of `text`, made if there is none; null with an `error` if the
  /// text is no kernel.
  Entry *find(std::string_view text, std::string &error);

private:
  static constexpr size_t kBuckets = 4096;

  Entry *lookUp(std::string_view text, size_t bucket) const;

  std::array<std::atomic<Entry *>, kBuckets> buckets{};
  std::mutex adding;
};

} // namespace mp::runtime

#endif // RUNTIME_LAUNCH_REGISTRY_H
