//===- KernelsImpl.h - the loops, for the instruction set at hand -*- C++
//-*-===//
//
// Included once by each file that is compiled for an instruction set. All is
// static and nothing comes from a header of templates: a function that the
// linker could share would bring one machine's instructions to another.
//
//===----------------------------------------------------------------------===//

#include "runtime/Numerics.h"
#include "runtime/Update/Kernels.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

using namespace mpopt;
using namespace mpopt::update;

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

static uint32_t toBits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
static float fromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

static void widenBF16(const uint16_t *__restrict from, float *__restrict to,
                      size_t n) {
  for (size_t i = 0; i != n; ++i)
    to[i] = fromBits(uint32_t(from[i]) << 16);
}

static bool isNaNBits(uint32_t bits) {
  return (bits & 0x7fffffff) > 0x7f800000;
}

static void narrowBF16(const float *__restrict from, uint16_t *__restrict to,
                       size_t n) {
  for (size_t i = 0; i != n; ++i) {
    uint32_t bits = toBits(from[i]);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40;
    to[i] = uint16_t(isNaNBits(bits) ? quiet : rounded);
  }
}

static void narrowBF16Stochastic(const float *__restrict from,
                                 const uint32_t *__restrict random,
                                 uint16_t *__restrict to, size_t n) {
  for (size_t i = 0; i != n; ++i) {
    uint32_t bits = toBits(from[i]);
    bool isFinite = (bits & 0x7f800000) != 0x7f800000;
    uint32_t up = isFinite ? random[i] & 0xffff : 0;
    uint32_t quiet = isNaNBits(bits) ? 0x40 : 0;
    to[i] = uint16_t(((bits + up) >> 16) | quiet);
  }
}

// The halves of a master: rounded half up in the bit pattern, since to even the
// low half would not tell which way a tie went.
static void splitBF16(const float *__restrict from, uint16_t *__restrict high,
                      uint16_t *__restrict low, size_t n) {
  for (size_t i = 0; i != n; ++i) {
    uint32_t bits = toBits(from[i]);
    bool isNaN = isNaNBits(bits);
    uint32_t rounded = (bits + 0x8000) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40;
    high[i] = uint16_t(isNaN ? quiet : rounded);
    low[i] = uint16_t(isNaN ? 0 : bits);
  }
}

static void joinBF16(const uint16_t *__restrict high,
                     const uint16_t *__restrict low, float *__restrict to,
                     size_t n) {
  for (size_t i = 0; i != n; ++i) {
    uint32_t wasRoundedUp = low[i] >> 15;
    to[i] = fromBits(((uint32_t(high[i]) - wasRoundedUp) << 16) | low[i]);
  }
}

static void widenF16(const uint16_t *__restrict from, float *__restrict to,
                     size_t n) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(
                                 reinterpret_cast<const __m256i *>(from + i))));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i *>(from + i))));
#endif
  for (; i != n; ++i)
    to[i] = f16ToF32(from[i]);
}

static void narrowF16(const float *__restrict from, uint16_t *__restrict to,
                      size_t n) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
  for (; i != n; ++i)
    to[i] = f32ToF16(from[i]);
}

/// The f16 magnitude below or above that of `magnitude`, which f16 can hold.
static uint32_t roundedF16Stochastic(uint32_t magnitude, uint32_t random) {
  uint32_t exponent = magnitude >> 23;
  constexpr uint32_t kLeastNormal = 127 - 14;
  if (exponent >= kLeastNormal)
    return ((magnitude + (random & 0x1fff)) >> 13) - ((127 - 15) << 10);
  // A multiple of 2^-24: cut off the bits below, up to all 24 and more.
  if (exponent == 0)
    return 0;
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  uint32_t cut = 13 + kLeastNormal - exponent;
  if (cut < 32)
    return (significand + (random & ((1U << cut) - 1))) >> cut;
  uint32_t tiny = cut < 64 ? uint32_t(uint64_t(significand) << 32 >> cut) : 0;
  return random + tiny < random; // a carry
}

static void narrowF16Stochastic(const float *__restrict from,
                                const uint32_t *__restrict random,
                                uint16_t *__restrict to, size_t n) {
  constexpr uint32_t kLargest = 0x477fe000; // 65504
  for (size_t i = 0; i != n; ++i) {
    uint32_t bits = toBits(from[i]), magnitude = bits & 0x7fffffff;
    if (magnitude > kLargest) // also inf and NaN
      to[i] = f32ToF16(from[i]);
    else
      to[i] = uint16_t((bits >> 31 << 15) |
                       roundedF16Stochastic(magnitude, random[i]));
  }
}

static size_t countInfF16(const uint16_t *values, size_t n) {
  uint16_t count = 0; // n <= kBlock fits
  for (size_t i = 0; i != n; ++i)
    count = uint16_t(count + ((values[i] & 0x7fff) == 0x7c00));
  return count;
}

/// The mixer of Wellons' "lowbias32", keyed twice.
static void randomWords(uint64_t seed, uint64_t first, uint32_t *__restrict to,
                        size_t n) {
  uint32_t key = uint32_t(seed) ^ uint32_t(first >> 32) * 0x9e3779b1U;
  uint32_t second = uint32_t(seed >> 32), start = uint32_t(first);
  for (size_t i = 0; i != n; ++i) {
    uint32_t x = (start + uint32_t(i)) ^ key;
    for (int round = 0; round != 2; ++round) {
      x ^= x >> 16;
      x *= 0x7feb352dU;
      x ^= x >> 15;
      x *= 0x846ca68bU;
      x ^= x >> 16;
      x += second;
    }
    to[i] = x;
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

template <typename T, size_t N>
using Vector = T __attribute__((vector_size(N * sizeof(T))));

/// Adds the upper half to the lower one until one number is left.
template <typename T, size_t N>
static T sumOf(Vector<T, N> values) {
  if constexpr (N == 1) {
    return values[0];
  } else {
    Vector<T, N / 2> low, high;
    __builtin_memcpy(&low, &values, sizeof low);
    __builtin_memcpy(&high,
                     reinterpret_cast<const char *>(&values) + sizeof low,
                     sizeof high);
    return sumOf<T, N / 2>(low + high);
  }
}

/// A square of an f32 is exact in double, and 2^53 of them do not overflow it.
static double sumInDouble(const float *values, size_t n) {
  Vector<double, 8> sums = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Vector<float, 8> narrow;
    __builtin_memcpy(&narrow, values + i, sizeof narrow);
    Vector<double, 8> wide = __builtin_convertvector(narrow, Vector<double, 8>);
    sums += wide * wide;
  }
  double total = sumOf<double, 8>(sums);
  for (; i != n; ++i)
    total += double(values[i]) * double(values[i]);
  return total;
}

/// 64 sums of at most kBlock / 64 squares each.
static float sumInSingle(const float *values, size_t n) {
  constexpr size_t kSums = 4;
  Vector<float, 16> sums[kSums] = {};
  for (size_t i = 0; i + 16 * kSums <= n; i += 16 * kSums)
    for (size_t k = 0; k != kSums; ++k) {
      Vector<float, 16> each;
      __builtin_memcpy(&each, values + i + 16 * k, sizeof each);
      sums[k] += each * each;
    }
  return sumOf<float, 16>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// In single precision where neither overflow nor underflow can matter: then
/// the few roundings of each sum are below 2^-20 of it.
static double sumOfSquares(const float *values, size_t n) {
  if (n % 64 != 0)
    return sumInDouble(values, n);
  float sum = sumInSingle(values, n);
  bool isSafe = sum > 1e-20f && sum < 1e30f;
  return isSafe ? double(sum) : sumInDouble(values, n);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

// The order of operations and the contractions are those of PyTorch's fused
// optimizers on the CPU, so that the bits are the same. A machine without fused
// multiply-add computes it in the C library, slowly.

static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

template <bool hasCoupledDecay, bool hasLargest>
static void adamLoop(const AdamFactors &f, const float *__restrict g,
                     float *__restrict p, float *__restrict m,
                     float *__restrict v, float *__restrict largest, size_t n) {
  // A lerp goes from the nearer end.
  bool isFromM = f.oneMinusBeta1 < 0.5f;
  float weight = isFromM ? f.oneMinusBeta1 : f.oneMinusBeta1 - 1.0f;
  const AdamFactors c = f; // no store below can change it
  for (size_t i = 0; i != n; ++i) {
    float param = p[i], grad = g[i] * c.gradient;
    if (hasCoupledDecay)
      grad = fma(param, c.coupledDecay, grad);
    param = param * c.keep;
    float mean = m[i];
    mean = fma(weight, grad - mean, isFromM ? mean : grad);
    float square = fma(c.oneMinusBeta2 * grad, grad, v[i] * c.beta2);
    m[i] = mean;
    v[i] = square;
    if (hasLargest) {
      // A NaN stays, on either side.
      float old = largest[i];
      square = square > old || square != square ? square : old;
      largest[i] = square;
    }
    float scale = __builtin_sqrtf(square) / c.rootCorrection + c.epsilon;
    p[i] = param + -c.stepSize * mean / scale;
  }
}

static void adam(const AdamFactors &f, const float *g, float *p, float *m,
                 float *v, float *largest, size_t n) {
  bool isCoupled = f.coupledDecay != 0.0f;
  if (largest)
    isCoupled ? adamLoop<true, true>(f, g, p, m, v, largest, n)
              : adamLoop<false, true>(f, g, p, m, v, largest, n);
  else
    isCoupled ? adamLoop<true, false>(f, g, p, m, v, largest, n)
              : adamLoop<false, false>(f, g, p, m, v, largest, n);
}

template <bool hasCoupledDecay, bool hasBuffer, bool isFirst, bool isNesterov>
static void sgdLoop(const SgdFactors &f, const float *__restrict g,
                    float *__restrict p, float *__restrict buffer, size_t n) {
  const SgdFactors c = f;
  for (size_t i = 0; i != n; ++i) {
    float param = p[i], grad = g[i] * c.gradient;
    if (hasCoupledDecay)
      grad = fma(param, c.coupledDecay, grad);
    if (hasBuffer) {
      float mean = isFirst
                       ? grad
                       : fma(grad, c.oneMinusDampening, buffer[i] * c.momentum);
      buffer[i] = mean;
      grad = isNesterov ? fma(mean, c.momentum, grad) : mean;
    }
    p[i] = fma(grad, -c.stepSize, param);
  }
}

template <bool hasCoupledDecay>
static void sgdOf(const SgdFactors &f, const float *g, float *p, float *buffer,
                  size_t n) {
  if (!f.hasBuffer)
    sgdLoop<hasCoupledDecay, false, false, false>(f, g, p, nullptr, n);
  else if (f.isFirst)
    f.isNesterov
        ? sgdLoop<hasCoupledDecay, true, true, true>(f, g, p, buffer, n)
        : sgdLoop<hasCoupledDecay, true, true, false>(f, g, p, buffer, n);
  else
    f.isNesterov
        ? sgdLoop<hasCoupledDecay, true, false, true>(f, g, p, buffer, n)
        : sgdLoop<hasCoupledDecay, true, false, false>(f, g, p, buffer, n);
}

static void sgd(const SgdFactors &f, const float *g, float *p, float *buffer,
                size_t n) {
  f.coupledDecay != 0.0f ? sgdOf<true>(f, g, p, buffer, n)
                         : sgdOf<false>(f, g, p, buffer, n);
}

static void lion(const LionFactors &f, const float *__restrict g,
                 float *__restrict p, float *__restrict m, size_t n) {
  const LionFactors c = f;
  for (size_t i = 0; i != n; ++i) {
    float grad = g[i] * c.gradient, mean = m[i];
    float direction = mean * c.beta1 + grad * c.oneMinusBeta1;
    // 0 has no direction; a NaN stays one.
    float step = direction > 0.0f   ? c.stepSize
                 : direction < 0.0f ? -c.stepSize
                                    : direction * 0.0f;
    p[i] = p[i] * c.keep - step;
    m[i] = mean * c.beta2 + grad * c.oneMinusBeta2;
  }
}

/// The table of this file's functions.
static constexpr Kernels kernelsNamed(const char *name, bool (*isSupported)()) {
  return {name,
          isSupported,
          widenF16,
          widenBF16,
          narrowF16,
          narrowBF16,
          narrowBF16Stochastic,
          narrowF16Stochastic,
          countInfF16,
          joinBF16,
          splitBF16,
          randomWords,
          sumOfSquares,
          adam,
          sgd,
          lion};
}
