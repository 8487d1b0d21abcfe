//===- Parse.h - pieces of the kernel parser --------------------*- C++ -*-===//
//
// What the parsers of matmul and row kernels share. Rules are those of
// codegen/docs/BackendContract.md.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_KERNEL_PARSE_H
#define MP_CODEGEN_KERNEL_PARSE_H

#include "codegen/Kernel/Kernel.h"

namespace mlir::mp::kernel {

/// "rule K5: ", to which the caller adds what is wrong.
InFlightDiagnostic emitRule(Operation *op, int rule);

/// K1 to K4: what holds for every kernel.
LogicalResult checkForm(func::FuncOp func);

/// The value of a constant that a linalg.fill puts everywhere, if `value` is
/// made by one.
std::optional<APFloat> filledFloat(Value value);
std::optional<APInt> filledInt(Value value);

/// The numbers of the loops that an indexing map reads, if it is a projected
/// permutation.
std::optional<SmallVector<unsigned>> loopsOf(AffineMap map);

/// The op whose value a body yields at this position.
Operation *yieldedOp(linalg::GenericOp op, unsigned position = 0);

/// What multiplies the size of a call in a dynamic argument of `op`; nullopt if
/// it reads none.
std::optional<int64_t> dynamicFactor(linalg::GenericOp op);

/// Whether a loop is reduced over.
bool isReduction(linalg::GenericOp op, unsigned loop);

/// Static extent of a loop, or kDynamic.
int64_t extentOf(linalg::GenericOp op, unsigned loop);

/// The bodies of the two kinds.
FailureOr<MatmulKernel> parseMatmul(func::FuncOp func,
                                    linalg::GenericOp contraction);
FailureOr<RowKernel> parseRows(func::FuncOp func);

/// The contraction of a function, or null: a generic op of three loops or more
/// whose last is reduced over.
linalg::GenericOp findContraction(func::FuncOp func);

/// Whether the function says that multiplications and additions may be fused.
bool allowsContraction(func::FuncOp func);

} // namespace mlir::mp::kernel

#endif // MP_CODEGEN_KERNEL_PARSE_H
