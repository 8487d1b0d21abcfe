//===- Kernel.h - what a backend needs to know of a kernel ------*- C++ -*-===//
//
// A kernel in the form of the backend contract
// (codegen/docs/BackendContract.md) taken apart: sizes, layouts and types as
// fields, arithmetic as the bodies of its linalg.generic ops, which an emitter
// clones on scalars, vectors or fragments of registers.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_KERNEL_KERNEL_H
#define MP_CODEGEN_KERNEL_KERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "runtime/Kernel.h"
#include <optional>
#include <variant>

namespace mlir::mp {

/// The name of the function of a kernel module.
inline constexpr llvm::StringLiteral kKernelName = "kernel";

/// What of the position (row, column) an operand's element depends on.
enum class Access { Element, Row, Column, Scalar };

/// "element", "row", "column" or "scalar".
llvm::StringRef stringifyAccess(Access access);

/// A value that the arithmetic of a kernel reads: an argument of the function.
struct KernelOperand {
  /// The argument's number.
  unsigned argument;
  Access access;
  /// The type in memory.
  Type element;
  /// Whether each matrix of a batch has its own elements.
  bool batched = false;
};

/// A value that a kernel writes: a result of the function.
struct KernelResult {
  /// The result's number.
  unsigned result;
  /// The number of the value among those that the body yields.
  unsigned yielded;
  Type element;
};

/// One matrix of a contraction, row-major in memory.
struct MatmulOperand {
  unsigned argument;
  Type element;
  /// lhs is stored as [m, k], transposed as [k, m]; rhs is stored as [k, n],
  /// transposed as [n, k] (the weight of a linear layer).
  bool transposed = false;
  /// A matrix that is not batched is read for each element of the batch.
  bool batched = false;
};

/// A sum beside a contraction, f32 until `element`: the gradient of a bias.
struct SideSum {
  enum class Over { LhsOverK, RhsOverK, ResultOverM };
  Over over;
  /// For ResultOverM: the number of the value that the epilogue yields.
  unsigned yielded = 0;
  /// The result of the kernel that gets it: [m], [n] and [n].
  unsigned result;
  Type element;
};

/// result[b, m, n] = epilogue(sum over k of lhs[b, m, k] * rhs[b, k, n], ...).
/// Extents are ShapedType::kDynamic where they are known only at run time.
struct MatmulKernel {
  func::FuncOp func;
  /// Its loops are (m, n, k) or (b, m, n, k).
  linalg::GenericOp contraction;
  int64_t batch = 1, m, n, k;
  /// What multiplies the size that a call gives for the dynamic extent: static
  /// dimensions that are collapsed into it.
  int64_t dynamicFactor = 1;
  /// One of the extents above, as a launch computes it.
  ::mp::runtime::Extent extent(int64_t size) const {
    if (ShapedType::isDynamic(size))
      return {dynamicFactor, 0};
    return {size, -1};
  }
  MatmulOperand lhs, rhs;
  /// The arithmetic after the accumulator. Its arguments are the accumulator
  /// (f32), then one scalar for each of `operands`, in order (the arguments for
  /// its results follow and are unused); its terminator yields the results.
  /// Null if the accumulator itself is the result.
  linalg::GenericOp epilogue;
  llvm::SmallVector<KernelOperand> operands;
  llvm::SmallVector<KernelResult> results;
  /// The result that is the f32 accumulator itself, if any.
  std::optional<unsigned> accumulatorResult;
  llvm::SmallVector<SideSum> sums;
  /// Whether multiplications and additions may be fused.
  bool contract = false;
};

/// One step over the rows of a row kernel.
struct RowStage {
  enum class Kind {
    Pointwise,       ///< [rows, columns]
    RowReduction,    ///< [rows], over columns
    RowPointwise,    ///< [rows]
    ColumnReduction, ///< [columns], over rows
    ColumnPointwise  ///< [columns]
  };
  Kind kind;
  linalg::GenericOp op;
  /// Of each input of `op`: what it depends on. An input is an argument of the
  /// function or a result of an earlier stage.
  llvm::SmallVector<Access> accesses;
  /// Of a reduction: the op of the body that joins two partial results.
  Operation *combiner = nullptr;
};

/// Stages over a matrix, each row of which fits one worker.
struct RowKernel {
  func::FuncOp func;
  int64_t rows, columns;
  /// As for a matmul: of dynamic rows.
  int64_t dynamicFactor = 1;
  llvm::SmallVector<RowStage> stages;
  bool contract = false;
};

using Kernel = std::variant<MatmulKernel, RowKernel>;

/// Takes the function apart; an error names the rule that it breaks.
FailureOr<Kernel> parseKernel(func::FuncOp func);

/// Finds `@kernel` in a module and takes it apart.
FailureOr<Kernel> parseKernel(ModuleOp module);

/// The function argument behind a value, through collapse_shape.
std::optional<unsigned> argumentOf(Value value);

/// The function's results that a value reaches, through expand_shape.
llvm::SmallVector<unsigned> resultsOf(Value value);

} // namespace mlir::mp

#endif // MP_CODEGEN_KERNEL_KERNEL_H
