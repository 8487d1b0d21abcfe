//===- RowsFixture.h - row kernels in the emulator --------------*- C++ -*-===//
//
// The kernels are the files of test/Codegen/Rows, for other types and widths
// than they are written for.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_ROWSFIXTURE_H
#define TEST_UNIT_ROWSFIXTURE_H

#include "RowsReference.h"
#include "codegen/CUDA/Rows/Rows.h"
#include "gtest/gtest.h"

namespace mlir::mp::test {

/// What the elements of arguments are.
enum class Data { Real, Integer };

class RowsTest : public ::testing::Test {
protected:
  RowsTest();

  /// Parses a family for an element type and a width.
  void parse(StringRef family, StringRef element, int64_t columns);
  cuda::RowSchedule defaultSchedule();
  /// Emits what was parsed, runs it on `rows` rows and compares. Integer data
  /// must give the bits of exact arithmetic.
  void check(int64_t rows, const cuda::RowSchedule &schedule,
             Data data = Data::Real);
  void check(int64_t rows) { check(rows, defaultSchedule()); }
  std::string ptxOf(StringRef chip);

  MLIRContext context;
  OwningOpRef<ModuleOp> source;
  RowKernel kernel;
};

} // namespace mlir::mp::test

#endif // TEST_UNIT_ROWSFIXTURE_H
