//===- Rounding.h - formats of weights and moments --------------*- C++ -*-===//
//
// The conversions of runtime/Update/KernelsImpl.h that are no single
// instruction, bit for bit. Values are f32, halves are i16; all may be vectors.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_UPDATE_ROUNDING_H
#define MP_CODEGEN_CUDA_UPDATE_ROUNDING_H

#include "codegen/CUDA/Update/Numbers.h"

namespace mlir::mp::cuda {

/// A master of f32 as the bf16 weight and the 16 bits below it.
std::pair<Value, Value> splitBF16(ImplicitLocOpBuilder &b, Value value);
Value joinBF16(ImplicitLocOpBuilder &b, Value high, Value low);

/// Rounds up with the probability of the part that is cut off.
Value roundBF16Stochastic(ImplicitLocOpBuilder &b, Value value, Value random);
Value roundF16Stochastic(ImplicitLocOpBuilder &b, Value value, Value random);

/// Random words (i32) for the elements whose numbers are `index` (i64); `key`
/// (i64) has the same shape.
Value randomWords(ImplicitLocOpBuilder &b, Value key, Value index);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_ROUNDING_H
