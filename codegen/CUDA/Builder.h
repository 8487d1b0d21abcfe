//===- Builder.h - short names for what kernels are made of -----*- C++ -*-===//
//
// Positions inside a tile are i32 values; addresses are LLVM pointers that take
// byte offsets. Arithmetic on constants folds as it is built.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_BUILDER_H
#define MP_CODEGEN_CUDA_BUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp::cuda {

/// Address spaces of pointers.
constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3;

class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(float value);
  LLVM::LLVMPointerType pointerType(unsigned space);

  // Unsigned arithmetic; both sides have one type.
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value div(Value a, Value b);
  Value div(Value a, int64_t b);
  Value rem(Value a, Value b);
  Value rem(Value a, int64_t b);
  Value xorOf(Value a, Value b);
  Value minOf(Value a, Value b);
  Value ceilDiv(Value a, int64_t b);
  Value isLess(Value a, Value b); ///< signed
  Value isEqual(Value a, Value b);
  Value andOf(Value a, Value b); ///< null stands for true
  Value select(Value condition, Value a, Value b);
  Value toI64(Value value);

  /// The address `bytes` behind a pointer; `bytes` is i32, i64 or a number.
  Value offset(Value pointer, Value bytes);
  Value offset(Value pointer, int64_t bytes);

  Value load(Type type, Value pointer, int64_t alignment);
  void store(Value value, Value pointer, int64_t alignment);

  /// Makes all threads of the block meet; orders shared and global memory among
  /// them.
  void barrier();
  /// The same for the threads of a warp.
  void syncWarp();
  /// Orders this thread's memory accesses for the whole device.
  void deviceFence();
};

/// The constant behind a value, if it is one.
std::optional<int64_t> constantOf(Value value);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_BUILDER_H
