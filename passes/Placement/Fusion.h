//===- Fusion.h - what a fuser would store ---------------------*- C++ -*-===//
//
// An estimate of the kernels that Inductor makes of a graph. A cast inside a
// kernel is free; what costs is what kernels store and read. Two steps, as in
// Inductor: first each pointwise operation is computed inside its readers,
// unless something needs it in memory (*stored* operations); then stored
// operations that share a buffer and an iteration space join one kernel.
//
// Library calls, sorts and scatters are kernels of their own. Forward and
// backward never share a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_FUSION_H
#define MP_PASSES_PLACEMENT_FUSION_H

#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::mp {

/// What a fuser makes of an operation.
enum class KernelRole : uint8_t {
  Nothing,   ///< sizes, scalars, the terminator
  View,      ///< renames elements; no kernel
  Creation,  ///< a constant; computed where it is read
  Pointwise, ///< computed in the kernel of a reader, unless it is stored
  Reduction, ///< stored, and starts a kernel
  External,  ///< a kernel of its own
};

KernelRole kernelRoleOf(Operation *op);

/// The value that `value` is a view of, through any number of views.
Value viewedBuffer(Value value);

/// Elements of a tensor; a dynamic dimension counts as kDynamicSize.
int64_t estimatedElements(Type type);
inline constexpr int64_t kDynamicSize = 128;

/// Bytes of a tensor's elements.
int64_t estimatedBytes(Type type);

class FusionEstimate {
public:
  struct Kernel {
    SmallVector<Operation *, 2> stored; ///< in program order
    bool isExternal = false;
    bool isBackward = false;
    /// Elements that the kernel iterates over.
    int64_t elements = 0;
  };

  explicit FusionEstimate(func::FuncOp func);

  ArrayRef<Kernel> getKernels() const { return kernels; }

  /// True if the result is in memory: an argument or what a kernel stores.
  bool isStored(Value value) const;

  /// The kernel that stores `value`, or -1 for an argument.
  int kernelOf(Value value) const;

  /// The operations of a kernel: the stored ones and what is computed inside
  /// them.
  SmallVector<Operation *> operationsOf(const Kernel &kernel) const;

private:
  void findStored(func::FuncOp func);
  bool needsMemory(Operation *op, size_t reads, int64_t size) const;

  llvm::DenseSet<Operation *> storedOps;
  llvm::DenseMap<Operation *, int> kernelOfOp;
  std::vector<Kernel> kernels;
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_FUSION_H
