//===- Kernel.h - compiled kernels, as they are called ----------*- C++ -*-===//
//
// The border between the code generator, which makes kernels, and the launch
// path, which calls them. Neither LLVM nor PyTorch stands here.
//
// Buffers are dense and row-major: the arguments of the kernel's function in
// order, then its results in order. `sizes` are the dynamic extents of the
// kernel (its rows), one for each dynamic dimension of its first dynamic
// argument; a kernel without dynamic extents gets none.
//
//===----------------------------------------------------------------------===//

#ifndef MP_RUNTIME_KERNEL_H
#define MP_RUNTIME_KERNEL_H

#include <cstdint>

namespace mp::runtime {

/// A kernel for the CPU. It works in phases, one after the other, each of them
/// a number of tasks that may run on any thread in any order.
struct CpuKernel {
  int32_t phases;
  /// Bytes of scratch memory (64-byte aligned) that one call needs.
  int64_t (*scratchBytes)(const int64_t *sizes, int32_t threads);
  int64_t (*tasks)(int32_t phase, const int64_t *sizes, int32_t threads);
  /// Runs the tasks [begin, end) of a phase.
  void (*run)(int32_t phase, int64_t begin, int64_t end, void *const *buffers,
              const int64_t *sizes, void *scratch, int32_t threads);
};

/// How many blocks a CUDA kernel is launched with, from its sizes.
struct CudaGrid {
  /// Extents of the problem, in the kernel's order of grid dimensions; -1 - i
  /// stands for sizes[i].
  int64_t extent[3] = {1, 1, 1};
  /// What one block covers of each. Blocks = ceil(extent / tile).
  int64_t tile[3] = {1, 1, 1};
  /// Whether all blocks are numbered along x alone (a tile order of the
  /// kernel's own: it then finds its tile by itself).
  bool flat = false;
};

/// A kernel for a GPU, as PTX or cubin beside this. Its parameters are the
/// buffers, then `sizes` as i64, then a pointer to the workspace if it has one.
struct CudaKernel {
  const char *name;
  CudaGrid grid;
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  /// Bytes of zeroed workspace for each block of the grid, and in all.
  int64_t workspacePerBlock = 0, workspaceBytes = 0;
};

} // namespace mp::runtime

#endif // MP_RUNTIME_KERNEL_H
