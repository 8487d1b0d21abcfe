//===- Distance.cpp - how far results are apart ---------------------------===//

#include "codegen/Reference/Distance.h"
#include "dialect/IR/MPOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Zero for equal numbers, NaN and infinities included.
static double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double size = std::abs(a - b);
  return std::isfinite(size) ? size : kInfinity;
}

double mlir::mp::reference::relativeDistance(const Tensor &exact,
                                             const Tensor &other) {
  if (exact.shape != other.shape)
    return kInfinity;
  double largest = 0, scale = 0;
  for (int64_t i = 0, end = exact.numElements(); i != end; ++i) {
    double value = exact.number(i);
    largest = std::max(largest, difference(value, other.number(i)));
    if (std::isfinite(value))
      scale = std::max(scale, std::abs(value));
  }
  if (largest == 0)
    return 0;
  return scale == 0 ? kInfinity : largest / scale;
}

double mlir::mp::reference::relativeDistance(ArrayRef<Tensor> exact,
                                             ArrayRef<Tensor> other) {
  if (exact.size() != other.size())
    return kInfinity;
  double largest = 0;
  for (auto [a, b] : llvm::zip(exact, other))
    largest = std::max(largest, relativeDistance(a, b));
  return largest;
}

static Type wideType(Type type) {
  auto f64 = Float64Type::get(type.getContext());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return isa<FloatType>(tensor.getElementType())
               ? RankedTensorType::get(tensor.getShape(), f64)
               : type;
  return isa<FloatType>(type) ? f64 : type;
}

OwningOpRef<func::FuncOp>
mlir::mp::reference::withoutRoundings(func::FuncOp func) {
  OwningOpRef<func::FuncOp> exact(func.clone());
  // A rounding by name is none of its types'.
  exact->walk([](RoundOp round) {
    round->getResult(0).replaceAllUsesWith(round->getOperand(0));
    round->erase();
  });
  exact->walk([](Operation *op) {
    for (Value result : op->getResults())
      result.setType(wideType(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(wideType(argument.getType()));
  });
  SmallVector<Type> inputs, results;
  for (Type type : func.getArgumentTypes())
    inputs.push_back(wideType(type));
  for (Type type : func.getResultTypes())
    results.push_back(wideType(type));
  exact->setFunctionType(FunctionType::get(func.getContext(), inputs, results));
  return exact;
}

std::vector<Tensor> mlir::mp::reference::widened(ArrayRef<Tensor> inputs) {
  std::vector<Tensor> wide(inputs.begin(), inputs.end());
  for (Tensor &input : wide)
    if (input.isFloat())
      input.element = Float64Type::get(input.element.getContext());
  return wide;
}
