//===- Operations.h - the tables of what a kernel may do -------*- C++ -*-===//

#ifndef TEST_EMULATOR_OPERATIONS_H
#define TEST_EMULATOR_OPERATIONS_H

#include "test/emulator/Machine.h"

namespace mlir::mp::emulator {

/// A row: the name of an intrinsic without "llvm.nvvm.", and what it does.
struct OperationRow {
  llvm::StringLiteral name;
  Operation run;
};

/// Indices, barriers, warp-wide exchange.
llvm::ArrayRef<OperationRow> threadOperations();
/// cp.async, ldmatrix.
llvm::ArrayRef<OperationRow> copyOperations();
/// mma.sync.
llvm::ArrayRef<OperationRow> matrixOperations();
/// Functions of numbers.
llvm::ArrayRef<OperationRow> numberOperations();

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_OPERATIONS_H
