//===- Program.h - kernels that are loaded on one device --------*- C++ -*-===//

#ifndef RUNTIME_CUDA_PROGRAM_H
#define RUNTIME_CUDA_PROGRAM_H

#include "runtime/CUDA/Driver.h"
#include "runtime/Kernel.h"
#include <memory>
#include <vector>

namespace mp::runtime::cuda {

/// What one launch is given.
struct LaunchArguments {
  /// Addresses on the device: the arguments, then the results.
  void *const *buffers;
  size_t bufferCount;
  const int64_t *sizes;
  size_t sizeCount;
  /// Of `Program::workspaceBytes`, any content; null if that is 0.
  void *workspace;
  Stream stream;
};

/// A kernel and the code that holds it.
struct CudaImage {
  CudaKernel kernel;
  /// A cubin, or PTX that ends with a null.
  const void *code;
};

/// The kernels of one region, launched one after the other.
class Program {
public:
  /// Loads all code. The first of CUDA's calls that fails is the `error`.
  static std::unique_ptr<Program> load(const Driver &driver, int device,
                                       const CudaImage *images, size_t count,
                                       std::string &error);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  /// Bytes of workspace for a call with these sizes.
  int64_t workspaceBytes(const int64_t *sizes) const;

  /// Whether there is nothing to compute: a dimension of a grid is empty.
  bool isEmpty(const int64_t *sizes) const;

  bool launch(const LaunchArguments &arguments, std::string &error) const;

private:
  struct Loaded {
    CudaKernel kernel;
    std::string name;
    std::vector<TensorMap> maps;
    Module module = nullptr;
    Function function = nullptr;
    /// No launch needs more blocks; 0 if there is no limit.
    int64_t maxBlocks = 0;
  };

  explicit Program(const Driver &driver) : driver(driver) {}
  bool loadOne(const CudaImage &image, std::string &error);
  bool limitBlocks(Loaded &loaded, std::string &error) const;
  bool launchOne(const Loaded &loaded, const LaunchArguments &arguments,
                 std::string &error) const;

  const Driver &driver;
  Device device = 0;
  Context context = nullptr;
  std::vector<Loaded> kernels;
};

/// Blocks of a launch along x, y and z.
struct Blocks {
  int64_t count[3];

  int64_t total() const { return count[0] * count[1] * count[2]; }
};

Blocks blocksOf(const CudaGrid &grid, const int64_t *sizes);

/// "sm_90" of a device; empty with an `error`.
std::string architectureOf(const Driver &driver, int device,
                           std::string &error);

} // namespace mp::runtime::cuda

#endif // RUNTIME_CUDA_PROGRAM_H
