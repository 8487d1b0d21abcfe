//===- UpdateEmitter.h - writes one update kernel ---------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_UPDATE_UPDATEEMITTER_H
#define MP_CODEGEN_CUDA_UPDATE_UPDATEEMITTER_H

#include "codegen/CUDA/Update/Numbers.h"
#include "codegen/CUDA/Update/Update.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::mp::cuda {

/// Writes the kernel of one set of formats.
class UpdateEmitter {
public:
  UpdateEmitter(MLIRContext &context, const UpdateKernel &kernel);
  EmittedKernel emit();

  static constexpr int64_t kThreads = 256, kVector = 8;

private:
  using Format = UpdateKernel::Format;
  enum class Lane { Weight, First, Second };

  /// An array of the tensor.
  struct Array {
    Value pointer;
    std::optional<Format> format;
  };

  /// The state of `width` elements, all in f32.
  struct Elements {
    Value weight, gradient, first, second, largest;
  };

  // UpdateEmitter.cpp: tables, chunks, memory.
  void makeFunction();
  void readTables();
  void emitLoops(llvm::function_ref<void(Value, int64_t)> body);
  Value isAligned();
  Value field(unsigned table, Value index, int64_t rowBytes, int64_t offset,
              Type type);
  Value factor(int64_t offset);
  Value read(const Array &array, Value index, int64_t width);
  void write(const Array &array, Value value, Value index, int64_t width,
             std::optional<Lane> lane);
  Value roundRandomly(Format format, Value value, Value index, int64_t width,
                      Lane lane);
  void clearGradient(Value index, int64_t width);
  void updateElements(Value index, int64_t width);
  Elements load(Value index, int64_t width);
  void store(const Elements &elements, Value index, int64_t width);

  // Algorithms.cpp: the arithmetic.
  void step(Elements &e);
  void adam(Elements &e);
  void sgd(Elements &e);
  void lion(Elements &e);
  Value decayed(const Elements &e);
  Value spread(int64_t offset, Value like);

  const UpdateKernel &kernel;
  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;
  Numbers n;

  // Of the block.
  SmallVector<Value> tables; ///< rows, factors, chunks, decision
  Value tensor, thread, begin, end, multiplier, isSkipped;
  Array weight, weightLow, gradient, first, second, largest, copy;
  llvm::DenseMap<int64_t, Value> factors; ///< by their place in CudaFactors
  SmallVector<Value> keys;
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_UPDATEEMITTER_H
