//===- Emitted.h - a kernel as an emitter hands it on -----------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_EMITTED_H
#define MP_CODEGEN_CUDA_EMITTED_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/Kernel.h"
#include <string>
#include <vector>

namespace mlir::mp::cuda {

/// A module with one gpu.module with one kernel, and how it is launched.
/// `launch.name` is a literal, the name of the gpu.func (or llvm.func).
struct EmittedKernel {
  OwningOpRef<ModuleOp> module;
  ::mp::runtime::CudaKernel launch;
  /// What `launch.maps` points to.
  std::vector<::mp::runtime::TensorMap> maps = {};
  /// Why it is not the kernel that the chip runs fastest; "" if it is.
  std::string note = {};
  /// What emitKernel followed, as it takes it.
  std::string schedule = {};
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_EMITTED_H
