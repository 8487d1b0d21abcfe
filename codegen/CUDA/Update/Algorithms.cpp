//===- Algorithms.cpp - the arithmetic of the update ----------------------===//
//
// The loops of runtime/Update/KernelsImpl.h, operation by operation.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Rows/Values.h"
#include "codegen/CUDA/Update/UpdateEmitter.h"
#include "runtime/CudaUpdate.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using mpopt::update::Algorithm;
using mpopt::update::CudaFactors;

/// A factor for each element.
Value UpdateEmitter::spread(int64_t offset, Value like) {
  return broadcastTo(b, factor(offset), mp::widthOf(like.getType()));
}

#define FACTOR(NAME) spread(offsetof(CudaFactors, NAME), e.weight)

/// The gradient with the decay that is part of it, if there is one: an added
/// zero could change a sign.
Value UpdateEmitter::decayed(const Elements &e) {
  Value decay = factor(offsetof(CudaFactors, coupledDecay));
  Value isCoupled = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, decay,
                                          n.real(0.0, decay));
  Value sum = n.fma(e.weight, FACTOR(coupledDecay), e.gradient);
  return n.select(isCoupled, sum, e.gradient);
}

void UpdateEmitter::adam(Elements &e) {
  Value rest = FACTOR(oneMinusBeta1);
  Value grad = decayed(e);
  Value param = n.mul(e.weight, FACTOR(keep));
  // A lerp goes from the nearer end.
  Value isFromM = n.isLess(rest, n.real(0.5, rest));
  Value part = n.select(isFromM, rest, n.sub(rest, n.real(1.0, rest)));
  Value nearer = n.select(isFromM, e.first, grad);
  e.first = n.fma(part, n.sub(grad, e.first), nearer);
  e.second = n.fma(n.mul(FACTOR(oneMinusBeta2), grad), grad,
                   n.mul(e.second, FACTOR(beta2)));
  Value square = e.second;
  if (kernel.largest) {
    // A NaN stays, on either side.
    Value isNew = arith::OrIOp::create(b, n.isGreater(square, e.largest),
                                       n.isNaN(square));
    square = n.select(isNew, square, e.largest);
    e.largest = square;
  }
  Value scale =
      n.add(n.div(n.root(square), FACTOR(rootCorrection)), FACTOR(epsilon));
  Value moved = n.div(n.mul(n.neg(FACTOR(stepSize)), e.first), scale);
  e.weight = n.add(param, moved);
}

void UpdateEmitter::sgd(Elements &e) {
  Value grad = decayed(e);
  if (kernel.first) {
    Value isFirst = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, factor(offsetof(CudaFactors, isFirst)),
        constantOf32(b, 0));
    Value mean = n.fma(grad, FACTOR(oneMinusDampening),
                       n.mul(e.first, FACTOR(momentum)));
    e.first = n.select(isFirst, grad, mean);
    grad = kernel.isNesterov ? n.fma(e.first, FACTOR(momentum), grad) : e.first;
  }
  e.weight = n.fma(grad, n.neg(FACTOR(stepSize)), e.weight);
}

void UpdateEmitter::lion(Elements &e) {
  Value grad = e.gradient, mean = e.first, step = FACTOR(stepSize);
  Value direction =
      n.add(n.mul(mean, FACTOR(beta1)), n.mul(grad, FACTOR(oneMinusBeta1)));
  Value zero = n.real(0.0, direction);
  // 0 has no direction; a NaN stays one.
  Value none = n.mul(direction, zero);
  Value down = n.select(n.isLess(direction, zero), n.neg(step), none);
  Value signedStep = n.select(n.isGreater(direction, zero), step, down);
  e.weight = n.sub(n.mul(e.weight, FACTOR(keep)), signedStep);
  e.first =
      n.add(n.mul(mean, FACTOR(beta2)), n.mul(grad, FACTOR(oneMinusBeta2)));
}

#undef FACTOR

void UpdateEmitter::step(Elements &e) {
  switch (kernel.algorithm) {
  case Algorithm::Adam:
    return adam(e);
  case Algorithm::SGD:
    return sgd(e);
  case Algorithm::Lion:
    return lion(e);
  }
}
