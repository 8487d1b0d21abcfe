//===- UpdateFixtures.h - what tests of the update share -------*- C++ -*-===//

#ifndef MP_TEST_UNIT_UPDATEFIXTURES_H
#define MP_TEST_UNIT_UPDATEFIXTURES_H

#include "runtime/Update.h"
#include "runtime/Update/Kernels.h"

#include <limits>
#include <random>
#include <vector>

namespace mpopt::update {

inline constexpr float kF32Inf = std::numeric_limits<float>::infinity();
inline constexpr float kF32NaN = std::numeric_limits<float>::quiet_NaN();

template <typename T>
Array arrayOf(std::vector<T> &values, Format format) {
  return {values.data(), format};
}
inline Array f32(std::vector<float> &values) {
  return arrayOf(values, Format::F32);
}

inline std::vector<float> normals(size_t n, uint64_t seed,
                                  float deviation = 1.0f) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> distribution(0.0f, deviation);
  std::vector<float> values(n);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

inline std::vector<const Kernels *> supported() {
  std::vector<const Kernels *> found;
  for (const char *name : {"portable", "avx2", "avx512"})
    if (const Kernels *kernels = findKernels(name))
      found.push_back(kernels);
  return found;
}

} // namespace mpopt::update

#endif // MP_TEST_UNIT_UPDATEFIXTURES_H
