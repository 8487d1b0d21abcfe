//===- NormalForm.h - from a function to terms -----------------*- C++ -*-===//

#ifndef MP_PASSES_CHECK_NORMALFORM_H
#define MP_PASSES_CHECK_NORMALFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Check/Terms.h"

namespace mlir::mp::check {

/// What records allow, after verification.
struct Allowances {
  /// A read of an operand that rounds it.
  struct Read {
    unsigned operand;
    FloatType half;
  };
  struct Call {
    FloatType half;
    bool keepsResult;
  };

  /// Operations of the module before whose rounding is dropped.
  llvm::DenseSet<Operation *> dropped;
  /// Operations of the module before that read operands rounded.
  llvm::DenseMap<Operation *, SmallVector<Read, 2>> roundedReads;
  /// Library calls of the module before that are computed from halves, and
  /// round their results unless they are products that keep them.
  llvm::DenseMap<Operation *, Call> halfCalls;
  /// Operations of the module before that compute f32 and round it, as a
  /// conversion that can be dropped if there is one result.
  llvm::DenseSet<Operation *> wideResults;
  /// Of those: operands that are read as they were before autocast rounded
  /// them, in the order of `frameworkOperands`.
  llvm::DenseMap<Operation *, SmallVector<int64_t, 2>> unrounded;
  /// Nodes of matrix products that read halves instead of widened halves.
  llvm::DenseSet<int64_t> halfMatmuls;
  /// The record can be read in another way: see `Merged`.
  bool isAmbiguous = false;
};

/// The terms of one function.
struct NormalForm {
  llvm::DenseMap<Value, TermId> terms;
  /// Operations that run for their effects, or draw random numbers, in order.
  SmallVector<Operation *> effects;
  /// Their operands, in the same order.
  SmallVector<SmallVector<TermId, 4>> effectOperands;
};

/// Computes the normal form of every value of `func`, which has one block.
NormalForm normalForm(func::FuncOp func, TermTable &table,
                      const Allowances &allowances);

/// True if the operation has a place in an order: effects, random numbers.
bool isOrdered(Operation *op);

/// True if `op` only converts elements, in whatever spelling.
bool isConversion(Operation *op);

/// Which conversions go through `op`, if the constants among its arguments are
/// no obstacle. None unless all float operands and results have one type.
Transparency transparencyOf(Operation *op);

/// The type to which `op` itself widens its operand, as pointwise operators do
/// with the narrower of two; null when it reads the operand as it is.
FloatType promotedType(OpOperand &operand);

/// Name and arguments that say what an operation computes: raised operations
/// and matrix products are the framework's operators that they stand for.
std::pair<Attribute, Attribute> signatureOf(Operation *op);

/// True for a matrix product, of either module.
bool isMatrixProduct(Operation *op);

/// Number of the node that `op` is, was made from, or is the `position`-th of.
int64_t nodeNumber(Operation *op, int64_t position);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_NORMALFORM_H
