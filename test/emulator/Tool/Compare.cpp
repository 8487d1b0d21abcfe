//===- Compare.cpp - results of a kernel against the reference ------------===//

#include "test/emulator/Tool/Compare.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::emulator;
using reference::Tensor;

/// The distance of neighbouring numbers of a type near `value`.
static double spacing(Type type, double value) {
  auto format = dyn_cast<FloatType>(type);
  if (!format)
    return 0;
  const llvm::fltSemantics &semantics = format.getFloatSemantics();
  int precision = int(llvm::APFloat::semanticsPrecision(semantics));
  int least = llvm::APFloat::semanticsMinExponent(semantics);
  int exponent = value == 0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - precision + 1);
}

static double largestOf(const Tensor &tensor) {
  double largest = 0;
  for (int64_t i = 0, end = tensor.numElements(); i != end; ++i)
    if (std::isfinite(tensor.number(i)))
      largest = std::max(largest, std::fabs(tensor.number(i)));
  return largest;
}

/// Infinite where only one is finite, or a NaN.
static double distanceOf(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want)))
    return 0;
  double distance = std::fabs(got - want);
  return std::isnan(distance) ? HUGE_VAL : distance;
}

Comparison emulator::compare(const Tensor &result, const Tensor &expected,
                             const Bound &bound) {
  Comparison comparison;
  comparison.elements = result.numElements();
  double slack = result.isFloat() ? largestOf(expected) * 0x1p-17 : 0;
  for (int64_t i = 0; i != comparison.elements; ++i) {
    double got = result.number(i), want = expected.number(i);
    if (reference::sameBits(got, want))
      continue;
    ++comparison.different;
    double distance = distanceOf(got, want);
    comparison.distance = std::max(comparison.distance, distance);
    double allowed = bound.places * spacing(result.element, want) + slack;
    if (!bound.isExact && distance <= allowed)
      continue;
    if (comparison.wrong++)
      continue;
    comparison.firstWrong = i;
    comparison.got = got;
    comparison.want = want;
  }
  return comparison;
}

static std::string indexOf(const Tensor &tensor, int64_t number) {
  std::string text;
  for (int64_t extent : llvm::reverse(tensor.shape)) {
    std::string index = std::to_string(number % extent);
    text.insert(0, text.empty() ? index : index + ", ");
    number /= extent;
  }
  return "(" + text + ")";
}

void emulator::print(llvm::raw_ostream &os, unsigned number,
                     const Tensor &result, const Comparison &comparison) {
  os << "result " << number << " (";
  for (int64_t extent : result.shape)
    os << extent << 'x';
  os << result.element << "): ";
  if (!comparison.different) {
    os << "all " << comparison.elements << " elements have the same bits\n";
    return;
  }
  os << comparison.different << " of " << comparison.elements
     << " elements have other bits, largest distance "
     << llvm::format("%.3g", comparison.distance);
  if (!comparison.wrong) {
    os << ", within the bound\n";
    return;
  }
  os << "; " << comparison.wrong << " are wrong, first "
     << indexOf(result, comparison.firstWrong) << ": "
     << llvm::format("%.9g", comparison.got) << ", not "
     << llvm::format("%.9g", comparison.want) << '\n';
}

llvm::json::Value emulator::toJson(const Comparison &comparison) {
  return llvm::json::Object{
      {"elements", comparison.elements},
      {"different", comparison.different},
      {"wrong", comparison.wrong},
      {"distance", std::isfinite(comparison.distance)
                       ? llvm::json::Value(comparison.distance)
                       : llvm::json::Value("infinite")},
  };
}
