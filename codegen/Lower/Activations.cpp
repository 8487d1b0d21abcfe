//===- Activations.cpp - activations and their gradients ------------------===//
//
// The formulas of PyTorch's own kernels, in their order of operations.
//
//===----------------------------------------------------------------------===//

#include "codegen/Lower/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

static constexpr double kSqrtHalf = 0.70710678118654752440;    // sqrt(1/2)
static constexpr double kSqrtTwoByPi = 0.79788456080286535588; // sqrt(2/pi)
static constexpr double kDensity = 0.39894228040143267794;     // 1/sqrt(2 pi)
static constexpr double kCubic = 0.044715;

/// 1 / (1 + exp(-x))
static Value sigmoid(Scalars &s, Value x) {
  Value e = s.exp(s.create<arith::NegFOp>(x));
  return s.div(s.number(1), s.add(s.number(1), e));
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3))
static Value geluTanh(Scalars &s, Value x) {
  Value cube = s.mul(s.mul(x, x), x);
  Value inner =
      s.mul(s.number(kSqrtTwoByPi), s.add(x, s.mul(s.number(kCubic), cube)));
  return s.create<math::TanhOp>(inner);
}

/// 1 + erf(x sqrt(1/2))
static Value twiceNormal(Scalars &s, Value x) {
  Value erf = s.create<math::ErfOp>(s.mul(x, s.number(kSqrtHalf)));
  return s.add(s.number(1), erf);
}

Value lower::emitGelu(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value x = call.first(), half = s.mul(x, s.number(0.5));
  if (call.text("approximate") == "tanh")
    return s.mul(half, s.add(s.number(1), geluTanh(s, x)));
  return s.mul(half, twiceNormal(s, x));
}

/// Of the approximation by tanh: left = x / 2, right = 1 + tanh(inner).
static Value geluTanhSlope(Scalars &s, Value x) {
  Value t = geluTanh(s, x), one = s.number(1), half = s.number(0.5);
  Value left = s.mul(half, x), right = s.add(one, t);
  Value slope = s.sub(one, s.mul(t, t));
  Value square = s.mul(x, x);
  Value inner = s.mul(s.number(kSqrtTwoByPi),
                      s.add(one, s.mul(s.number(3 * kCubic), square)));
  return s.add(s.mul(half, right), s.mul(s.mul(left, slope), inner));
}

static Value geluSlope(Scalars &s, Value x) {
  Value normal = s.mul(s.number(0.5), twiceNormal(s, x));
  Value exponent = s.mul(s.mul(x, x), s.number(-0.5));
  Value density = s.mul(s.exp(exponent), s.number(kDensity));
  return s.add(normal, s.mul(x, density));
}

Value lower::emitGeluBackward(PointwiseCall &call) {
  Value gradient = call.real("grad_output", 0), x = call.real("self", 1);
  bool isTanh = call.text("approximate") == "tanh";
  Scalars &s = call.scalars;
  return s.mul(gradient, isTanh ? geluTanhSlope(s, x) : geluSlope(s, x));
}

Value lower::emitRelu(PointwiseCall &call) {
  return call.scalars.create<arith::MaximumFOp>(call.first(),
                                                call.scalars.number(0));
}

Value lower::emitSigmoid(PointwiseCall &call) {
  return sigmoid(call.scalars, call.first());
}

Value lower::emitSilu(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value x = call.first();
  Value e = s.exp(s.create<arith::NegFOp>(x));
  return s.div(x, s.add(s.number(1), e));
}

Value lower::emitSiluBackward(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value gradient = call.real("grad_output", 0), x = call.real("self", 1);
  Value y = sigmoid(s, x), one = s.number(1);
  Value slope = s.add(one, s.mul(x, s.sub(one, y)));
  return s.mul(s.mul(gradient, y), slope);
}

/// grad (1 - y) y
Value lower::emitSigmoidBackward(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value gradient = call.real("grad_output", 0), y = call.real("output", 1);
  return s.mul(s.mul(gradient, s.sub(s.number(1), y)), y);
}

/// grad (1 - y y)
Value lower::emitTanhBackward(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value gradient = call.real("grad_output", 0), y = call.real("output", 1);
  return s.mul(gradient, s.sub(s.number(1), s.mul(y, y)));
}

/// 0 where self is at most the threshold, and the gradient elsewhere.
Value lower::emitThresholdBackward(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value gradient = call.real("grad_output", 0), x = call.real("self", 1);
  Value isLow = s.create<arith::CmpFOp>(arith::CmpFPredicate::OLE, x,
                                        s.number(call.number("threshold", 0)));
  return s.create<arith::SelectOp>(isLow, s.number(0), gradient);
}
