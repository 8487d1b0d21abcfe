//===- Update.h - check, measure, update: two sweeps over memory -*- C++
//-*-===//
//
// From scaled gradients to new weights. `measureGradients` reads each gradient
// once: finite or not, and the sum of squares for clipping. `applyUpdate` reads
// gradient, weight and moments and writes weight, moments, the half copy of the
// weight and zeros for the gradient, in one sweep.
//
// All arithmetic is in f32, whatever is stored. The results depend neither on
// the number of threads nor on the instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_UPDATE_H
#define RUNTIME_UPDATE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpopt::update {

struct Kernels;

enum class Format : uint8_t { F32, F16, BF16 };

/// Elements one after another in memory; none if `data` is null.
struct Array {
  void *data = nullptr;
  Format format = Format::F32;

  explicit operator bool() const { return data != nullptr; }
};

enum class Algorithm : uint8_t {
  Adam, ///< first: mean, second: square, largest: its maximum (AMSGrad)
  SGD,  ///< first: momentum buffer
  Lion, ///< first: mean
};

/// How a weight in a half type that has no low half is rounded when it is
/// stored, and its means and squares, where they are in a half type, too.
enum class Rounding : uint8_t {
  Nearest,    ///< ties to even
  Stochastic, ///< up with the probability of the part that is cut off
};

/// What the tensors of a group share.
struct Hyperparameters {
  Algorithm algorithm = Algorithm::Adam;
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.0;
  double momentum = 0.0;
  double dampening = 0.0;
  /// Decay multiplies the weight (AdamW, Lion) and is no part of the gradient.
  bool isDecayDecoupled = false;
  bool isMaximized = false;
  bool isNesterov = false;
  Rounding rounding = Rounding::Nearest;
  uint64_t seed = 0; ///< of `Rounding::Stochastic`
};

/// One parameter with all that belongs to it. Arrays of `size` elements; none
/// may overlap another.
struct Tensor {
  size_t size = 0;
  Array weight;
  /// The lower 16 bits of an f32 master whose upper half `weight` holds, in
  /// bf16; see `Kernels::splitBF16`. Null without one.
  uint16_t *weightLow = nullptr;
  Array gradient;
  Array first, second, largest;
  Array copy; ///< of the new weight, for the next forward
  uint32_t group = 0;
  /// Updates that were applied, this one included: t of the bias correction.
  double step = 1.0;
  /// The first one: SGD's buffer starts as the gradient.
  bool isFirst = false;
  /// Which parameter it is. Random bits depend on the seed, on this, on `step`
  /// and on the element, and on nothing else.
  uint32_t number = 0;
};

/// Calls `body(begin, end, context)` for parts of [0, count), on any threads.
using Body = void (*)(int64_t begin, int64_t end, void *context);
using ParallelFor = void (*)(int64_t count, Body body, void *context);

/// On the calling thread.
void serialFor(int64_t count, Body body, void *context);

/// What the gradients are, before anything is changed.
struct Measured {
  /// Of the gradients as they are, scaled; in double, which they cannot
  /// overflow. Not finite if a gradient is not.
  double sumOfSquares = 0.0;
  /// Bits of `NonFinite`; also inf for what overflows f32 when it is unscaled.
  uint32_t flags = 0;
  uint64_t infs = 0;
  uint64_t nans = 0;
  /// The first tensor that is not finite; the number of tensors if all are.
  size_t firstBad = 0;
};

/// Reads all gradients; `inverse` is 1 / scale. A tensor without a gradient
/// counts for nothing.
Measured measureGradients(const std::vector<Tensor> &tensors, float inverse,
                          const Kernels &kernels, ParallelFor parallelFor);

/// The factor that clips a norm: min(1, limit / (norm + 1e-6)), in f32 as
/// torch.nn.utils.clip_grad_norm_; 1 without a limit, which is 0.
float clipFactor(double norm, double limit);

struct Decision {
  float multiplier = 1.0f; ///< of the gradient: 1 / scale and the clip factor
  /// Change nothing but the gradients, which are cleared if they would be.
  bool isSkipped = false;
  bool clearsGradients = false; ///< by a store of zeros
};

/// What an update has seen on its way.
struct Applied {
  /// Finite weights whose f16 copy became inf.
  uint64_t castOverflows = 0;
  /// Weights in a half type, rounded to nearest, of which no element changed,
  /// although there was a gradient that was not 0 and a learning rate.
  uint32_t stalled = 0;
  /// The first tensor of those; the number of tensors if there is none.
  size_t firstStalled = 0;
};

/// Updates all tensors that have a gradient.
Applied applyUpdate(const std::vector<Tensor> &tensors,
                    const std::vector<Hyperparameters> &groups,
                    const Decision &decision, const Kernels &kernels,
                    ParallelFor parallelFor);

} // namespace mpopt::update

#endif // RUNTIME_UPDATE_H
