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

/// An extent that may depend on the sizes of a call: `factor`, times
/// sizes[size] if size is not negative. A kernel whose rows stand for two
/// collapsed dimensions, the first of them dynamic, has a factor.
struct Extent {
  int64_t factor = 1;
  int32_t size = -1;

  int64_t value(const int64_t *sizes) const {
    return size < 0 ? factor : factor * sizes[size];
  }
};

/// A buffer that a kernel moves through a tensor map (sm_90 and later): what a
/// launch gives to cuTensorMapEncodeTiled. The matrix is dense, its rows are a
/// multiple of 16 bytes long and its extents are at least 1; the buffer must
/// start at a multiple of 16 bytes. What lies outside reads as zero.
struct TensorMap {
  enum class Element : int32_t { F16, BF16, F32 };

  /// The number among the buffers: arguments, then results.
  int32_t buffer = 0;
  Element element = Element::F16;
  /// 2, or 3 with a batch.
  int32_t rank = 2;
  /// Elements, the innermost dimension (the row) first.
  Extent extents[3];
  /// Elements that one copy moves. One row of a box has 128 bytes, and the
  /// 16-byte pieces of a box in shared memory are swizzled over these 128 bytes
  /// (CU_TENSOR_MAP_SWIZZLE_128B).
  uint32_t box[3] = {1, 1, 1};

  int32_t elementBytes() const { return element == Element::F32 ? 4 : 2; }
};

/// How many blocks a CUDA kernel is launched with, from its sizes.
struct CudaGrid {
  /// Extents of the problem, in the kernel's order of grid dimensions; -1 - i
  /// stands for sizes[i].
  int64_t extent[3] = {1, 1, 1};
  /// What multiplies each extent: a collapsed dimension behind a dynamic one.
  int64_t factor[3] = {1, 1, 1};
  /// What one block covers of each. Blocks = ceil(extent / tile).
  int64_t tile[3] = {1, 1, 1};
  /// Whether all blocks are numbered along x alone (a tile order of the
  /// kernel's own: it then finds its tile by itself).
  bool flat = false;
  /// If not zero: a block goes through several tiles (flat kernels only), and
  /// the launch needs no more blocks than this for each multiprocessor. More do
  /// no harm.
  int32_t blocksPerProcessor = 0;
};

/// A kernel for a GPU, as PTX or cubin beside this. Its parameters are the
/// tensor maps by value (128 bytes each), the buffers, `sizes` as i64, then a
/// pointer to the workspace if it has one. Every buffer, and the workspace,
/// must start at a multiple of 16 bytes.
struct CudaKernel {
  const char *name;
  CudaGrid grid;
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  /// Bytes of zeroed workspace for each block of the grid, and in all.
  int64_t workspacePerBlock = 0, workspaceBytes = 0;
  const TensorMap *maps = nullptr;
  int32_t mapCount = 0;
};

} // namespace mp::runtime

#endif // MP_RUNTIME_KERNEL_H
