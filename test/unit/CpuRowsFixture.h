//===- CpuRowsFixture.h - row kernels on this machine -----------*- C++ -*-===//

#ifndef TEST_UNIT_CPUROWSFIXTURE_H
#define TEST_UNIT_CPUROWSFIXTURE_H

#include "codegen/CPU/Compile.h"
#include "codegen/Kernel/Read.h"
#include "codegen/Reference/Tensor.h"
#include "gtest/gtest.h"

namespace mlir::mp::test {

using reference::Tensor;
using Tensors = std::vector<Tensor>;

/// What the elements of arguments are.
enum class Data { Real, Integer };

/// In which order tasks run, and how many in one call.
enum class Tasks { AtOnce, OneByOneBackwards };

class CpuRows : public ::testing::Test {
protected:
  /// Takes a kernel to run.
  void parse(const std::string &text);
  /// One of test/Codegen/Rows.
  void parse(StringRef family, StringRef element, int64_t columns);
  /// Instructions that this machine has: "portable", "avx2", ...
  std::vector<std::string> isas();

  /// Arguments for `rows` rows. Labels are columns; a row's float is between 1
  /// and 3, so that it can be a statistic of any kind.
  Tensors makeInputs(int64_t rows, Data data);
  /// What the compiled kernel makes of them; nothing outside of the results may
  /// be written.
  Tensors run(const Tensors &inputs, int64_t rows, Tasks tasks = Tasks::AtOnce);
  /// What the interpreter makes of them, rounding where the kernel says.
  Tensors interpret(const Tensors &inputs);

  /// One place of each result's type, and of the largest element 2^-17 for what
  /// f32 arithmetic loses, from double precision.
  void checkBound(const Tensors &inputs, const Tensors &results, int64_t rows);
  void checkBound(int64_t rows);
  /// The interpreter's bits.
  void checkExact(const Tensors &inputs, int64_t rows);

  cpu::CpuOptions options;
  RowKernel kernel;
  int64_t columns = 0;

private:
  std::unique_ptr<KernelText> source;
  std::string text;
};

} // namespace mlir::mp::test

#endif // TEST_UNIT_CPUROWSFIXTURE_H
