//===- Kernels.h - inner loops of the scaled update ------------*- C++ -*-===//
//
// One table of functions per instruction set. All give the same bits: they are
// one source, compiled several times without contraction of a multiply and an
// add, and sums run over a fixed number of lanes.
//
// A loop sees at most kBlock elements, converted to f32 before and from f32
// after. The buffers stay in the first cache, so that a format costs no loop of
// its own.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_UPDATE_KERNELS_H
#define RUNTIME_UPDATE_KERNELS_H

#include <cstddef>
#include <cstdint>

namespace mpopt::update {

/// Elements per call of a loop below.
inline constexpr size_t kBlock = 512;

/// What `adam` needs beside the elements; bias corrections are in it. Formula:
/// Kingma and Ba, 2015; decoupled decay: Loshchilov and Hutter, 2019; `max`:
/// Reddi et al., 2018.
struct AdamFactors {
  float gradient;     ///< multiplies the gradient: 1 / scale, clip, sign
  float coupledDecay; ///< weight decay added to the gradient (Adam)
  float keep;         ///< 1 - lr * weight decay (AdamW)
  float beta1, oneMinusBeta1;
  float beta2, oneMinusBeta2;
  float stepSize;       ///< lr / (1 - beta1^t)
  float rootCorrection; ///< sqrt(1 - beta2^t)
  float epsilon;
};

/// p = p * keep - lr * (nesterov ? g + momentum * b : b)
struct SgdFactors {
  float gradient;
  float coupledDecay;
  float momentum;
  float oneMinusDampening;
  float stepSize;
  bool isFirst;   ///< the buffer starts as the gradient
  bool hasBuffer; ///< momentum is not 0
  bool isNesterov;
};

/// p = p * keep - lr * sign(beta1 * m + (1 - beta1) * g). Chen et al., 2023.
struct LionFactors {
  float gradient;
  float keep;
  float beta1, oneMinusBeta1;
  float beta2, oneMinusBeta2;
  float stepSize;
};

/// The loops of one instruction set; n <= kBlock, no two arrays overlap.
struct Kernels {
  const char *name;
  bool (*isSupported)();

  void (*widenF16)(const uint16_t *from, float *to, size_t n);
  void (*widenBF16)(const uint16_t *from, float *to, size_t n);
  void (*narrowF16)(const float *from, uint16_t *to, size_t n);
  void (*narrowBF16)(const float *from, uint16_t *to, size_t n);
  /// Rounds up with the probability of the discarded part; `random` is one
  /// word per element.
  void (*narrowBF16Stochastic)(const float *from, const uint32_t *random,
                               uint16_t *to, size_t n);
  /// The same; beyond the largest f16 to nearest.
  void (*narrowF16Stochastic)(const float *from, const uint32_t *random,
                              uint16_t *to, size_t n);
  /// How many f16 values are inf, of either sign.
  size_t (*countInfF16)(const uint16_t *values, size_t n);
  /// A master of f32 as a bf16 weight and the 16 bits below it.
  void (*joinBF16)(const uint16_t *high, const uint16_t *low, float *to,
                   size_t n);
  void (*splitBF16)(const float *from, uint16_t *high, uint16_t *low, size_t n);
  /// Words that depend on the seed and the index of the element only.
  void (*randomWords)(uint64_t seed, uint64_t first, uint32_t *to, size_t n);

  /// The sum of squares, in double; not finite if an element is not.
  double (*sumOfSquares)(const float *values, size_t n);

  void (*adam)(const AdamFactors &f, const float *g, float *p, float *m,
               float *v, float *largest, size_t n);
  void (*sgd)(const SgdFactors &f, const float *g, float *p, float *buffer,
              size_t n);
  void (*lion)(const LionFactors &f, const float *g, float *p, float *m,
               size_t n);
};

/// The best table that this machine runs, or the one that is named.
const Kernels &bestKernels();
const Kernels *findKernels(const char *name);

extern const Kernels kPortable;
#ifdef MPOPT_X86_KERNELS
extern const Kernels kAVX2;
extern const Kernels kAVX512;
#endif

} // namespace mpopt::update

#endif // RUNTIME_UPDATE_KERNELS_H
