//===- Noise.h - how roundings reach the results ---------------*- C++ -*-===//
//
// A static estimate, good for comparing placements and for nothing else. Each
// rounding to the half type adds relative noise of variance 1 (in units of that
// of one rounding); noise of different roundings is independent and travels
// along the first derivatives. Matrix products, and sums of terms of either
// sign, keep the relative noise of their terms; sums of terms of one sign
// average it away; a sum of two values weighs their noise by their mean
// squares, which are estimated alongside from the rules of ScaleRules.def with
// inputs of mean square 1.
//
// Noise is linear in the roundings that are added, so that one reverse sweep
// gives the price of each: what it adds to the mean noise of the results.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_NOISE_H
#define MP_PASSES_PLACEMENT_NOISE_H

#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::mp {

class NoiseModel {
public:
  explicit NoiseModel(func::FuncOp func);

  /// Mean noise of the float results as traced, in roundings.
  double total() const { return mean; }

  /// What the total grows by if `use` reads its value rounded.
  double priceOf(OpOperand &use) const;

  /// The noise of a value as traced, in roundings.
  double noiseOf(Value value) const { return lookUp(value).noise; }

private:
  struct State {
    double noise = 0;  ///< relative variance, in roundings
    double square = 1; ///< estimated mean square
    double weight = 0; ///< derivative of the total by this noise
  };

  void forward(Operation *op);
  void backward(Operation *op);
  State lookUp(Value value) const;

  llvm::DenseMap<Value, State> states;
  /// Per operand: derivative of the results' noise by the operand's.
  llvm::DenseMap<Operation *, SmallVector<double, 3>> gains;
  double mean = 0;
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_NOISE_H
