//===- RegionOps.h - what our own kernels can compute ----------*- C++ -*-===//
//
// The roles that operations have in a region. They say how a kernel's loops go
// over an operation; the arithmetic is codegen/Lower's.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_OUTLINE_REGIONOPS_H
#define MP_PASSES_OUTLINE_REGIONOPS_H

#include "dialect/IR/MPOps.h"

namespace mlir::mp {

enum class RegionRole {
  None,       ///< no kernel of ours computes it
  Pointwise,  ///< each element from the same element of its operands
  Constant,   ///< one number in every place
  View,       ///< the same elements in the same order, or one spread over many
  Transpose,  ///< the two dimensions of a matrix exchanged
  Reduction,  ///< over the columns or over the rows of a matrix
  RowIndexed, ///< one element of each row, told by an index
  Rows,       ///< several stages over the last dimensions: norms, softmax
  Matmul,     ///< a product of matrices
};

/// The role of an operation. None also where the table has its operator but
/// arguments, types or the form of a view are beyond our kernels.
RegionRole regionRoleOf(Operation *op);

/// The name that the table knows `op` by.
llvm::StringRef regionOpName(Operation *op);

/// A number or a list of them among the arguments of an operator; none if it is
/// absent, or known only at run time.
std::optional<double> numberOf(Operation *op, llvm::StringRef name);
std::optional<llvm::SmallVector<int64_t>> integersOf(Operation *op,
                                                     llvm::StringRef name);
/// An integer or boolean argument, `absent` without one.
int64_t integerOf(Operation *op, llvm::StringRef name, int64_t absent);

/// The dimensions that a reduction goes over, sorted; all if none are named.
llvm::SmallVector<int64_t> reducedDims(Operation *op);

} // namespace mlir::mp

#endif // MP_PASSES_OUTLINE_REGIONOPS_H
