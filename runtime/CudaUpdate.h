//===- CudaUpdate.h - tables of the update kernels -------------*- C++ -*-===//
//
// What the multi-tensor kernels of a GPU read: one row for each tensor, its
// factors, and a map from blocks to chunks of tensors. All lie in the memory of
// the device, so that a step needs no read by the host: learning rates, decay,
// step counts and the decision are written there by whoever knows them.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_CUDAUPDATE_H
#define RUNTIME_CUDAUPDATE_H

#include <cstddef>
#include <cstdint>

namespace mpopt::update {

/// Elements that one block works on, as on the CPU.
inline constexpr int64_t kCudaChunk = 32768;

/// One tensor; null where it has no such array. A kernel is for one set of
/// formats, so that these stand in no row.
struct CudaRow {
  void *weight = nullptr, *weightLow = nullptr, *gradient = nullptr;
  void *first = nullptr, *second = nullptr, *largest = nullptr;
  void *copy = nullptr;
  int64_t size = 0;
};

/// The factors of AdamFactors, SgdFactors and LionFactors for one tensor.
struct CudaFactors {
  float sign = 1.0f; ///< of the gradient: -1 if it is maximized
  float coupledDecay = 0.0f, keep = 1.0f;
  float beta1 = 0.0f, oneMinusBeta1 = 0.0f;
  float beta2 = 0.0f, oneMinusBeta2 = 0.0f;
  float stepSize = 0.0f, rootCorrection = 1.0f, epsilon = 0.0f;
  float momentum = 0.0f, oneMinusDampening = 0.0f;
  uint32_t isFirst = 0;
  uint32_t padding = 0;
  /// Of the random bits of weight, first and second.
  uint64_t keys[3] = {0, 0, 0};
};

/// What one block does.
struct CudaChunk {
  int32_t tensor = 0, chunk = 0;
};

/// What one block has measured.
struct CudaPart {
  double sumOfSquares = 0.0;
  uint64_t infs = 0, nans = 0;
};

/// The sum of parts: a message that ranks add up.
struct CudaTotals {
  double sumOfSquares = 0.0, infs = 0.0, nans = 0.0;
};

/// The decision of this step, and how many there were of each kind.
struct CudaDecision {
  float multiplier = 1.0f;
  uint32_t isSkipped = 0;
  double norm = 0.0; ///< of the gradients as they are, scaled
  uint64_t applied = 0, skipped = 0;
};

/// Who counts the updates of a tensor, where the host cannot: it does not know
/// which steps are skipped. Both may be the same number.
struct CudaClock {
  float *step = nullptr; ///< updates so far
  float *age = nullptr;  ///< 0 before the first one: SGD's buffer is new
  uint32_t number = 0;   ///< `Tensor::number`
  uint32_t row = 0;      ///< of the tensor's factors
};

/// What the kernel `factors` is told of a group, beside its numbers.
enum CudaOption : uint64_t { Decoupled = 1, Maximized = 2, IsAdam = 4 };

/// Words that one launch of the kernel `poke` writes: with the others they
/// stay within the 4 KiB that parameters may take.
inline constexpr int64_t kCudaPokeWords = 480;

} // namespace mpopt::update

#endif // RUNTIME_CUDAUPDATE_H
