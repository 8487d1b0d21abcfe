//===- Distance.h - how far results are apart ------------------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_DISTANCE_H
#define CODEGEN_REFERENCE_DISTANCE_H

#include "codegen/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp::reference {

/// The largest difference of two elements, relative to the largest magnitude in
/// `exact`; infinite where one side is not finite and the other not equal to
/// it, or the shapes differ. NaN is equal to NaN.
double relativeDistance(const Tensor &exact, const Tensor &other);

/// The largest of all results, and infinite where their numbers differ.
double relativeDistance(ArrayRef<Tensor> exact, ArrayRef<Tensor> other);

/// `func` with every float in f64: what it means without roundings.
OwningOpRef<func::FuncOp> withoutRoundings(func::FuncOp func);

/// `inputs` for `withoutRoundings(func)`: the same numbers.
std::vector<Tensor> widened(ArrayRef<Tensor> inputs);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_DISTANCE_H
