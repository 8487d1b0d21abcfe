//===- Apply.cpp - one sweep from gradients to new weights ----------------===//

#include "runtime/Update/Blocks.h"

#include <cmath>
#include <cstring>

using namespace mpopt;
using namespace mpopt::update;

namespace {
struct Factors {
  AdamFactors adam;
  SgdFactors sgd;
  LionFactors lion;
};

struct Application {
  const std::vector<Tensor> &tensors;
  const std::vector<Hyperparameters> &groups;
  const std::vector<Chunk> &chunks;
  const std::vector<Factors> &factors; ///< by tensor
  const Decision &decision;
  const Kernels &kernels;
};
} // namespace

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

// All in double, rounded once.

static Factors factorsOf(const Tensor &tensor, const Hyperparameters &h,
                         const Decision &decision) {
  Factors f;
  float gradient = h.isMaximized ? -decision.multiplier : decision.multiplier;
  double lr = h.learningRate;
  auto coupled = float(h.isDecayDecoupled ? 0.0 : h.weightDecay);
  auto keep = float(h.isDecayDecoupled ? 1.0 - lr * h.weightDecay : 1.0);
  auto beta1 = float(h.beta1), oneMinusBeta1 = float(1.0 - h.beta1);
  auto beta2 = float(h.beta2), oneMinusBeta2 = float(1.0 - h.beta2);
  double correction1 = 1.0 - std::pow(h.beta1, tensor.step);
  double correction2 = 1.0 - std::pow(h.beta2, tensor.step);
  f.adam = {gradient,
            coupled,
            keep,
            beta1,
            oneMinusBeta1,
            beta2,
            oneMinusBeta2,
            float(lr / correction1),
            float(std::sqrt(correction2)),
            float(h.epsilon)};
  f.sgd = {
      gradient,  coupled,        float(h.momentum),  float(1.0 - h.dampening),
      float(lr), tensor.isFirst, bool(tensor.first), h.isNesterov};
  f.lion = {gradient, keep,          beta1,    oneMinusBeta1,
            beta2,    oneMinusBeta2, float(lr)};
  return f;
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

namespace {
/// The buffers of one thread.
struct Blocks {
  Block weight, gradient, first, second, largest;
  uint32_t random[kBlock];
};
} // namespace

static float *loadIfAny(Block &block, const Kernels &kernels,
                        const Array &array, size_t begin, size_t n) {
  return array ? block.load(kernels, array, begin, n) : nullptr;
}

static void storeIfAny(const Kernels &kernels, const float *values,
                       const Array &array, size_t begin, size_t n) {
  if (array)
    storeBlock(kernels, values, array, begin, n);
}

static void storeWeight(const Application &all, const Tensor &tensor,
                        uint64_t firstElement, float *values, Blocks &blocks,
                        size_t begin, size_t n) {
  const Kernels &kernels = all.kernels;
  void *to = elementOf(tensor.weight, begin);
  bool isStochastic = all.decision.seed != 0 && !tensor.weightLow &&
                      tensor.weight.format == Format::BF16;
  if (tensor.weightLow) {
    kernels.splitBF16(values, static_cast<uint16_t *>(to),
                      tensor.weightLow + begin, n);
  } else if (isStochastic) {
    kernels.randomWords(all.decision.seed, firstElement + begin, blocks.random,
                        n);
    kernels.narrowBF16Stochastic(values, blocks.random,
                                 static_cast<uint16_t *>(to), n);
  } else {
    storeBlock(kernels, values, tensor.weight, begin, n);
  }
}

static void updateBlock(const Application &all, const Chunk &chunk,
                        Blocks &blocks, size_t begin, size_t n) {
  const Kernels &kernels = all.kernels;
  const Tensor &tensor = all.tensors[chunk.tensor];
  const Factors &factors = all.factors[chunk.tensor];
  float *weight = tensor.weightLow
                      ? blocks.weight.loadSplit(kernels, tensor.weight,
                                                tensor.weightLow, begin, n)
                      : blocks.weight.load(kernels, tensor.weight, begin, n);
  const float *gradient =
      blocks.gradient.load(kernels, tensor.gradient, begin, n);
  float *first = loadIfAny(blocks.first, kernels, tensor.first, begin, n);
  float *second = loadIfAny(blocks.second, kernels, tensor.second, begin, n);
  float *largest = loadIfAny(blocks.largest, kernels, tensor.largest, begin, n);

  switch (all.groups[tensor.group].algorithm) {
  case Algorithm::Adam:
    kernels.adam(factors.adam, gradient, weight, first, second, largest, n);
    break;
  case Algorithm::SGD:
    kernels.sgd(factors.sgd, gradient, weight, first, n);
    break;
  case Algorithm::Lion:
    kernels.lion(factors.lion, gradient, weight, first, n);
    break;
  }

  storeIfAny(kernels, first, tensor.first, begin, n);
  storeIfAny(kernels, second, tensor.second, begin, n);
  storeIfAny(kernels, largest, tensor.largest, begin, n);
  // Tensors draw from ranges that are far apart.
  storeWeight(all, tensor, uint64_t(chunk.tensor) << 40, weight, blocks, begin,
              n);
  storeIfAny(kernels, weight, tensor.copy, begin, n);
}

static void applyChunk(Application &all, size_t index) {
  const Chunk &chunk = all.chunks[index];
  const Array &gradient = all.tensors[chunk.tensor].gradient;
  Blocks blocks;
  for (size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
    size_t n = std::min(kBlock, chunk.end - begin);
    if (!all.decision.isSkipped)
      updateBlock(all, chunk, blocks, begin, n);
    if (all.decision.clearsGradients)
      std::memset(elementOf(gradient, begin), 0, n * bytesOf(gradient.format));
  }
}

void mpopt::update::applyUpdate(const std::vector<Tensor> &tensors,
                                const std::vector<Hyperparameters> &groups,
                                const Decision &decision,
                                const Kernels &kernels,
                                ParallelFor parallelFor) {
  if (decision.isSkipped && !decision.clearsGradients)
    return;
  std::vector<Chunk> chunks = chunksOf(tensors);
  std::vector<Factors> factors;
  factors.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    factors.push_back(factorsOf(tensor, groups[tensor.group], decision));
  Application all = {tensors, groups, chunks, factors, decision, kernels};
  forEachIndex(parallelFor, chunks.size(), all, applyChunk);
}
