//===- Runs.h - neighbours of a row: operands, arithmetic, stores -*- C++
//-*-==//

#ifndef MP_CODEGEN_CUDA_MATMUL_RUNS_H
#define MP_CODEGEN_CUDA_MATMUL_RUNS_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

/// The epilogue on runs of `width` neighbours that start at one column.
class RunEmitter {
public:
  /// Reads the operands that do not depend on the row; `column` must lie inside
  /// the result where `isGuarded`, or nothing is read.
  RunEmitter(Frame &frame, int64_t width, Value column, Value isInside);

  /// What one run reads from memory.
  struct Run {
    Value row;
    SmallVector<Value> operands;
  };
  Run load(Value row);

  /// Computes and stores a run; returns what the body yields (the accumulator
  /// itself if there is no body).
  SmallVector<Value> finish(const Run &run, Value accumulator);

private:
  Value loadOperand(const KernelOperand &operand, Value row);
  Value loadFixed(const KernelOperand &operand);
  Value elementIndex(Access access, bool batched, Value row);
  Value loadVector(Type element, Value address, int64_t width);
  void store(Value value, unsigned result, Type element, Value row);
  SmallVector<Value> indices(Value row);

  Frame &frame;
  KernelBuilder &b;
  int64_t width;
  Value column, isInside;
  SmallVector<Value> fixed; ///< one per operand; null if it depends on the row
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_RUNS_H
