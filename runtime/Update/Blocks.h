//===- Blocks.h - arrays in pieces that stay in the first cache -*- C++ -*-===//

#ifndef RUNTIME_UPDATE_BLOCKS_H
#define RUNTIME_UPDATE_BLOCKS_H

#include "runtime/Update.h"
#include "runtime/Update/Kernels.h"

namespace mpopt::update {

/// What one thread takes at a time. A chunk lies within one tensor, and which
/// elements are in it does not depend on the threads.
struct Chunk {
  size_t tensor, begin, end;
};

inline constexpr size_t kChunk = 64 * kBlock;

/// The chunks of all tensors that have a gradient.
std::vector<Chunk> chunksOf(const std::vector<Tensor> &tensors);

/// Runs `body(context, index)` for each index in [0, count).
template <typename Context>
void forEachIndex(ParallelFor parallelFor, size_t count, Context &context,
                  void (*body)(Context &, size_t)) {
  struct Call {
    Context &context;
    void (*body)(Context &, size_t);
  } call = {context, body};
  parallelFor(
      int64_t(count),
      [](int64_t begin, int64_t end, void *opaque) {
        Call &call = *static_cast<Call *>(opaque);
        for (int64_t i = begin; i != end; ++i)
          call.body(call.context, size_t(i));
      },
      &call);
}

size_t bytesOf(Format format);

/// The address of element `index`.
void *elementOf(const Array &array, size_t index);

/// A block of an array as f32: in place if it is that, else in a buffer.
class Block {
public:
  /// Reads `n` elements from `begin` on.
  float *load(const Kernels &kernels, const Array &array, size_t begin,
              size_t n);
  /// The f32 values of a bf16 weight and the bits below it.
  float *loadSplit(const Kernels &kernels, const Array &weight,
                   const uint16_t *low, size_t begin, size_t n);

private:
  alignas(64) float buffer[kBlock];
};

/// Writes what `Block::load` gave, changed, back to where it was.
void storeBlock(const Kernels &kernels, const float *values, const Array &array,
                size_t begin, size_t n);

} // namespace mpopt::update

#endif // RUNTIME_UPDATE_BLOCKS_H
