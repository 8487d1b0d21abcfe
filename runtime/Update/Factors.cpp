//===- Factors.cpp - what an update multiplies with -----------------------===//

#include "runtime/Update/Factors.h"

#include <cmath>

using namespace mpopt;
using namespace mpopt::update;

// All in double, rounded once.

Factors mpopt::update::factorsOf(const Tensor &tensor, const Hyperparameters &h,
                                 float multiplier) {
  Factors f;
  float gradient = h.isMaximized ? -multiplier : multiplier;
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

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t mpopt::update::keyOf(const Hyperparameters &h, const Tensor &tensor,
                              Lane lane) {
  uint64_t array = uint64_t(tensor.number) << 8 | uint64_t(lane);
  return mix(mix(mix(h.seed) ^ array) ^ uint64_t(tensor.step));
}

CudaFactors mpopt::update::cudaFactorsOf(const Tensor &tensor,
                                         const Hyperparameters &h) {
  Factors f = factorsOf(tensor, h, 1.0f);
  CudaFactors cuda;
  cuda.sign = f.adam.gradient;
  cuda.coupledDecay = f.adam.coupledDecay;
  cuda.keep = f.adam.keep;
  cuda.beta1 = f.adam.beta1;
  cuda.oneMinusBeta1 = f.adam.oneMinusBeta1;
  cuda.beta2 = f.adam.beta2;
  cuda.oneMinusBeta2 = f.adam.oneMinusBeta2;
  bool isAdam = h.algorithm == Algorithm::Adam;
  cuda.stepSize = isAdam ? f.adam.stepSize : f.sgd.stepSize;
  cuda.rootCorrection = f.adam.rootCorrection;
  cuda.epsilon = f.adam.epsilon;
  cuda.momentum = f.sgd.momentum;
  cuda.oneMinusDampening = f.sgd.oneMinusDampening;
  cuda.isFirst = tensor.isFirst;
  for (Lane lane : {Lane::Weight, Lane::First, Lane::Second})
    cuda.keys[int(lane)] = keyOf(h, tensor, lane);
  return cuda;
}
