//===- Kernel.h - frame of the kernels without a source ---------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_UPDATE_KERNEL_H
#define MP_CODEGEN_CUDA_UPDATE_KERNEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/Update.h"

namespace mlir::mp::cuda {

/// Memory of the device.
Type globalPointer(Builder &b);

/// The type of an array's elements.
Type typeOf(Builder &b, mpopt::update::Format format);

/// Starts a module with the kernel `name`; `b` then stands at its beginning.
/// Returns its parameters. `shared` are the 8-byte slots of shared memory that
/// it needs.
SmallVector<Value> startKernel(ImplicitLocOpBuilder &b, ModuleOp module,
                               StringRef name, TypeRange parameters,
                               int32_t threads, int64_t shared = 0);

/// The field at `offset` of row `index` (i64; null: the only row) of a table.
Value loadField(ImplicitLocOpBuilder &b, Value table, Value index,
                int64_t rowBytes, int64_t offset, Type type);
void storeField(ImplicitLocOpBuilder &b, Value value, Value table, Value index,
                int64_t rowBytes, int64_t offset);

/// Positions, as i64.
Value threadNumber(ImplicitLocOpBuilder &b);
Value blockNumber(ImplicitLocOpBuilder &b);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_KERNEL_H
