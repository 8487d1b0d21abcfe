//===- Apply.cpp - one sweep from gradients to new weights ----------------===//

#include "runtime/Update/Blocks.h"
#include "runtime/Update/Factors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mpopt;
using namespace mpopt::update;

namespace {
/// What one chunk has seen.
struct Tally {
  uint64_t castOverflows = 0;
  bool hasGradient = false; ///< one that is not 0, in what follows
  bool isStalled = false;   ///< all blocks so far; only of weights in question
};

struct Application {
  const std::vector<Tensor> &tensors;
  const std::vector<Hyperparameters> &groups;
  const std::vector<Chunk> &chunks;
  const std::vector<Factors> &factors; ///< by tensor
  const Decision &decision;
  const Kernels &kernels;
  std::vector<Tally> tallies; ///< by chunk
};
} // namespace

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

namespace {
/// The buffers of one thread.
struct Blocks {
  Block weight, gradient, first, second, largest;
  uint32_t random[kBlock];
  uint16_t before[kBlock];
};

} // namespace

static float *loadIfAny(Block &block, const Kernels &kernels,
                        const Array &array, size_t begin, size_t n) {
  return array ? block.load(kernels, array, begin, n) : nullptr;
}

static void store(const Application &all, const Tensor &tensor, Lane lane,
                  const float *values, const Array &array, Blocks &blocks,
                  size_t begin, size_t n) {
  const Kernels &kernels = all.kernels;
  const Hyperparameters &group = all.groups[tensor.group];
  if (!array)
    return;
  if (group.rounding == Rounding::Nearest || array.format == Format::F32) {
    storeBlock(kernels, values, array, begin, n);
    return;
  }
  kernels.randomWords(keyOf(group, tensor, lane), begin, blocks.random, n);
  auto narrow = array.format == Format::F16 ? kernels.narrowF16Stochastic
                                            : kernels.narrowBF16Stochastic;
  narrow(values, blocks.random,
         static_cast<uint16_t *>(elementOf(array, begin)), n);
}

/// The same with a look at whether anything changes.
static void storeWatched(const Application &all, const Tensor &tensor,
                         const float *values, const float *gradient,
                         Blocks &blocks, Tally &tally, size_t begin, size_t n) {
  void *to = elementOf(tensor.weight, begin);
  size_t bytes = n * bytesOf(tensor.weight.format);
  std::memcpy(blocks.before, to, bytes);
  store(all, tensor, Lane::Weight, values, tensor.weight, blocks, begin, n);
  tally.isStalled = std::memcmp(blocks.before, to, bytes) == 0;
  tally.hasGradient =
      tally.hasGradient ||
      std::any_of(gradient, gradient + n, [](float g) { return g != 0.0f; });
}

static void storeWeight(const Application &all, const Tensor &tensor,
                        const float *values, const float *gradient,
                        Blocks &blocks, Tally &tally, size_t begin, size_t n) {
  if (tensor.weightLow)
    all.kernels.splitBF16(
        values, static_cast<uint16_t *>(elementOf(tensor.weight, begin)),
        tensor.weightLow + begin, n);
  else if (tally.isStalled)
    storeWatched(all, tensor, values, gradient, blocks, tally, begin, n);
  else
    store(all, tensor, Lane::Weight, values, tensor.weight, blocks, begin, n);
}

static void storeCopy(const Application &all, const Tensor &tensor,
                      const float *values, Tally &tally, size_t begin,
                      size_t n) {
  if (!tensor.copy)
    return;
  storeBlock(all.kernels, values, tensor.copy, begin, n);
  if (tensor.copy.format != Format::F16)
    return;
  auto *half = static_cast<const uint16_t *>(elementOf(tensor.copy, begin));
  if (all.kernels.countInfF16(half, n) == 0)
    return;
  for (size_t i = 0; i != n; ++i)
    tally.castOverflows +=
        (half[i] & 0x7fff) == 0x7c00 && std::isfinite(values[i]);
}

static void updateBlock(const Application &all, const Chunk &chunk,
                        Blocks &blocks, Tally &tally, size_t begin, size_t n) {
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

  store(all, tensor, Lane::First, first, tensor.first, blocks, begin, n);
  store(all, tensor, Lane::Second, second, tensor.second, blocks, begin, n);
  if (tensor.largest)
    storeBlock(kernels, largest, tensor.largest, begin, n);
  storeWeight(all, tensor, weight, gradient, blocks, tally, begin, n);
  storeCopy(all, tensor, weight, tally, begin, n);
}

/// Whether it is worth a word that the weight stays as it is.
static bool isWatched(const Tensor &tensor, const Hyperparameters &group) {
  return tensor.weight.format != Format::F32 && !tensor.weightLow &&
         group.rounding == Rounding::Nearest && group.learningRate != 0.0;
}

static void applyChunk(Application &all, size_t index) {
  const Chunk &chunk = all.chunks[index];
  const Tensor &tensor = all.tensors[chunk.tensor];
  const Array &gradient = tensor.gradient;
  Tally tally;
  tally.isStalled = isWatched(tensor, all.groups[tensor.group]);
  Blocks blocks;
  for (size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
    size_t n = std::min(kBlock, chunk.end - begin);
    if (!all.decision.isSkipped)
      updateBlock(all, chunk, blocks, tally, begin, n);
    if (all.decision.clearsGradients)
      std::memset(elementOf(gradient, begin), 0, n * bytesOf(gradient.format));
  }
  all.tallies[index] = tally;
}

static Applied sumOf(const Application &all) {
  Applied result;
  result.firstStalled = all.tensors.size();
  // The chunks of a tensor follow one another.
  for (size_t i = 0; i != all.chunks.size();) {
    size_t tensor = all.chunks[i].tensor;
    bool isStalled = true, hasGradient = false;
    for (; i != all.chunks.size() && all.chunks[i].tensor == tensor; ++i) {
      result.castOverflows += all.tallies[i].castOverflows;
      isStalled = isStalled && all.tallies[i].isStalled;
      hasGradient = hasGradient || all.tallies[i].hasGradient;
    }
    if (!isStalled || !hasGradient)
      continue;
    ++result.stalled;
    result.firstStalled = std::min(result.firstStalled, tensor);
  }
  return result;
}

Applied mpopt::update::applyUpdate(const std::vector<Tensor> &tensors,
                                   const std::vector<Hyperparameters> &groups,
                                   const Decision &decision,
                                   const Kernels &kernels,
                                   ParallelFor parallelFor) {
  if (decision.isSkipped && !decision.clearsGradients)
    return {0, 0, tensors.size()};
  std::vector<Chunk> chunks = chunksOf(tensors);
  std::vector<Factors> factors;
  factors.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    factors.push_back(
        factorsOf(tensor, groups[tensor.group], decision.multiplier));
  Application all = {tensors,
                     groups,
                     chunks,
                     factors,
                     decision,
                     kernels,
                     std::vector<Tally>(chunks.size())};
  forEachIndex(parallelFor, chunks.size(), all, applyChunk);
  return sumOf(all);
}
