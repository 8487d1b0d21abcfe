//===- Measure.cpp - one read of the gradients ----------------------------===//

#include "runtime/LossScaler.h"
#include "runtime/Update/Blocks.h"

#include <cmath>
#include <limits>

using namespace mpopt;
using namespace mpopt::update;

namespace {
struct Part {
  double sumOfSquares = 0.0;
  uint64_t infs = 0, nans = 0;
};

struct Measurement {
  const std::vector<Tensor> &tensors;
  const std::vector<Chunk> &chunks;
  const Kernels &kernels;
  float inverse;
  /// What no sum of squares reaches unless an element overflows, unscaled.
  double overflowBound;
  std::vector<Part> parts;
};
} // namespace

/// Only for a block that has some, which is rare.
static void countNonFinite(const float *values, size_t n, float inverse,
                           Part &part) {
  for (size_t i = 0; i != n; ++i) {
    part.nans += std::isnan(values[i]);
    part.infs += std::isinf(values[i] * inverse);
  }
}

static void measureChunk(Measurement &all, size_t index) {
  const Chunk &chunk = all.chunks[index];
  const Array &gradient = all.tensors[chunk.tensor].gradient;
  Part part;
  Block block;
  for (size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
    size_t n = std::min(kBlock, chunk.end - begin);
    const float *values = block.load(all.kernels, gradient, begin, n);
    double sum = all.kernels.sumOfSquares(values, n);
    // True for inf and NaN, too.
    if (!(sum < all.overflowBound))
      countNonFinite(values, n, all.inverse, part);
    part.sumOfSquares += sum;
  }
  all.parts[index] = part;
}

Measured mpopt::update::measureGradients(const std::vector<Tensor> &tensors,
                                         float inverse, const Kernels &kernels,
                                         ParallelFor parallelFor) {
  std::vector<Chunk> chunks = chunksOf(tensors);
  double largest = double(std::numeric_limits<float>::max()) /
                   std::max(double(inverse), 1.0);
  Measurement all = {tensors, chunks, kernels, inverse, largest * largest, {}};
  all.parts.resize(chunks.size());
  forEachIndex(parallelFor, chunks.size(), all, measureChunk);

  Measured result;
  result.firstBad = tensors.size();
  for (size_t i = 0; i != chunks.size(); ++i) {
    const Part &part = all.parts[i];
    result.sumOfSquares += part.sumOfSquares;
    result.infs += part.infs;
    result.nans += part.nans;
    if ((part.infs || part.nans) && result.firstBad == tensors.size())
      result.firstBad = chunks[i].tensor;
  }
  result.flags = (result.infs ? SawInf : 0) | (result.nans ? SawNaN : 0);
  return result;
}

float mpopt::update::clipFactor(double norm, double limit) {
  if (limit == 0.0)
    return 1.0f;
  float factor = float(limit) / (float(norm) + 1e-6f);
  return factor < 1.0f ? factor : 1.0f;
}
