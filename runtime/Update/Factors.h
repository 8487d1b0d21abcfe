//===- Factors.h - what an update multiplies with --------------*- C++ -*-===//

#ifndef RUNTIME_UPDATE_FACTORS_H
#define RUNTIME_UPDATE_FACTORS_H

#include "runtime/CudaUpdate.h"
#include "runtime/Update.h"
#include "runtime/Update/Kernels.h"

namespace mpopt::update {

struct Factors {
  AdamFactors adam;
  SgdFactors sgd;
  LionFactors lion;
};

/// The factors of one tensor; `multiplier` is that of the decision.
Factors factorsOf(const Tensor &tensor, const Hyperparameters &h,
                  float multiplier);

/// The arrays that are rounded, each with random bits of its own.
enum class Lane : uint8_t { Weight, First, Second };

/// The key of the random bits of an array in this update.
uint64_t keyOf(const Hyperparameters &h, const Tensor &tensor, Lane lane);

/// The same for the kernels of a GPU.
CudaFactors cudaFactorsOf(const Tensor &tensor, const Hyperparameters &h);

} // namespace mpopt::update

#endif // RUNTIME_UPDATE_FACTORS_H
