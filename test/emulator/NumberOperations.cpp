//===- NumberOperations.cpp - functions of numbers ------------------------===//
//
// Approximations of the GPU are computed exactly here and rounded once: their
// errors belong to the hardware.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Operations.h"

#include <cmath>

using namespace mlir::mp::emulator;

template <double (*Of)(double)>
static void unary(const Call &call) {
  call.setResult(float(Of(double(call.argument<float>(0)))));
}

/// With denormals taken, and given, as zero.
template <double (*Of)(double)>
static void flushing(const Call &call) {
  auto flush = [](float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value)
                                                  : value;
  };
  call.setResult(flush(float(Of(double(flush(call.argument<float>(0)))))));
}

static double saturate(double x) { return x > 0 ? std::fmin(x, 1) : 0; }
static double reciprocal(double x) { return 1 / x; }
static double reciprocalRoot(double x) { return 1 / std::sqrt(x); }

template <float (*Of)(float, float)>
static void binary(const Call &call) {
  call.setResult(Of(call.argument<float>(0), call.argument<float>(1)));
}
static float sum(float a, float b) { return a + b; }
static float product(float a, float b) { return a * b; }
static float quotient(float a, float b) { return a / b; }

static void fusedMultiplyAdd(const Call &call) {
  call.setResult(std::fma(call.argument<float>(0), call.argument<float>(1),
                          call.argument<float>(2)));
}
/// Rounds down; libdevice takes the integer part of a number so.
static void fusedMultiplyAddDown(const Call &call) {
  double product = double(call.argument<float>(0)) * call.argument<float>(1);
  double addend = call.argument<float>(2), sum = product + addend;
  // What the sum has lost: positive if it was rounded down.
  double part = sum - product;
  double lost = (product - (sum - part)) + (addend - part);
  float rounded = float(sum);
  bool isAbove = double(rounded) > sum || (double(rounded) == sum && lost < 0);
  call.setResult(isAbove ? std::nextafter(rounded, -HUGE_VALF) : rounded);
}
static void bits(const Call &call) {
  call.setResult(call.argument<uint32_t>(0));
}
static void toIntNearest(const Call &call) {
  call.setResult(int32_t(std::nearbyint(call.argument<float>(0))));
}
static void toIntDown(const Call &call) {
  call.setResult(int32_t(std::floor(call.argument<float>(0))));
}
static void toIntZero(const Call &call) {
  call.setResult(int32_t(call.argument<float>(0)));
}
static void fromInt(const Call &call) {
  call.setResult(float(call.argument<int32_t>(0)));
}

llvm::ArrayRef<OperationRow> mlir::mp::emulator::numberOperations() {
  static const OperationRow rows[] = {
      {"ex2.approx.f", unary<std::exp2>},
      {"ex2.approx.f32", unary<std::exp2>},
      {"ex2.approx.ftz.f", flushing<std::exp2>},
      {"ex2.approx.ftz.f32", flushing<std::exp2>},
      {"lg2.approx.f", unary<std::log2>},
      {"lg2.approx.ftz.f", flushing<std::log2>},
      {"tanh.approx.f", unary<std::tanh>},
      {"sin.approx.f", unary<std::sin>},
      {"cos.approx.f", unary<std::cos>},
      {"rsqrt.approx.f", unary<reciprocalRoot>},
      {"rsqrt.approx.ftz.f", flushing<reciprocalRoot>},
      {"rcp.approx.ftz.f", flushing<reciprocal>},
      {"rcp.rn.f", unary<reciprocal>},
      {"sqrt.f", unary<std::sqrt>},
      {"sqrt.rn.f", unary<std::sqrt>},
      {"sqrt.approx.f", unary<std::sqrt>},
      {"fabs.f", unary<std::fabs>},
      {"fabs.f32", unary<std::fabs>},
      {"floor.f", unary<std::floor>},
      {"ceil.f", unary<std::ceil>},
      {"trunc.f", unary<std::trunc>},
      {"round.f", unary<std::nearbyint>},
      {"add.rn.f", binary<sum>},
      {"mul.rn.f", binary<product>},
      {"div.rn.f", binary<quotient>},
      {"div.full", binary<quotient>},
      {"div.approx.f", binary<quotient>},
      {"fmin.f", binary<std::fmin>},
      {"fmax.f", binary<std::fmax>},
      {"fma.rn.f", fusedMultiplyAdd},
      {"fma.rm.f", fusedMultiplyAddDown},
      {"saturate.f", unary<saturate>},
      {"saturate.ftz.f", flushing<saturate>},
      {"bitcast.f2i", bits},
      {"bitcast.i2f", bits},
      {"f2i.rn", toIntNearest},
      {"f2i.rm", toIntDown},
      {"f2i.rz", toIntZero},
      {"i2f.rn", fromInt},
  };
  return rows;
}
