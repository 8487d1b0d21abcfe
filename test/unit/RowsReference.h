//===- RowsReference.h - row kernels in double precision --------*- C++ -*-===//
//
// Runs the stages of a row kernel one element after another. Numbers are
// doubles; only a truncf rounds, to its type.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_ROWSREFERENCE_H
#define TEST_UNIT_ROWSREFERENCE_H

#include "codegen/Kernel/Kernel.h"

namespace mlir::mp::test {

using Numbers = std::vector<double>;

/// The nearest number of a type.
double roundTo(Type type, double value);

/// The results of the kernel for `rows` rows.
std::vector<Numbers> runReference(const RowKernel &kernel, int64_t rows,
                                  const std::vector<Numbers> &arguments);

} // namespace mlir::mp::test

#endif // TEST_UNIT_ROWSREFERENCE_H
