//===- CudaMatmulFixture.h - matmul kernels in the emulator -----*- C++ -*-===//

#ifndef TEST_UNIT_CUDAMATMULFIXTURE_H
#define TEST_UNIT_CUDAMATMULFIXTURE_H

#include "MatmulText.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/Kernel.h"
#include "test/emulator/Emulator.h"
#include "gtest/gtest.h"

namespace mlir::mp::test {

/// A dense tensor of f16, bf16, f32 or i1 (one byte) as memory and as numbers.
struct Buffer {
  std::string element;
  std::vector<char> bytes;
  std::vector<double> values;

  Buffer(llvm::StringRef element, size_t size);
  /// Small integers (0 and 1 for i1), so that no order of additions matters.
  void fill(unsigned &seed);
  /// Takes the numbers from memory.
  void read();
  /// A number as the element type holds it.
  double round(double value) const;

private:
  void write(size_t i, double value);
};

/// One kernel, its schedule and its buffers.
class CudaMatmulTest : public ::testing::Test {
protected:
  CudaMatmulTest();

  /// Emits and lowers the kernel; false with a failure if that goes wrong.
  bool compile(llvm::StringRef text, llvm::StringRef schedule);
  /// Runs it with copies that arrive at once and late; checks that both give
  /// the same bits and that nothing is wrong with the accesses. `size` is the
  /// dynamic extent, 0 if there is none.
  void run(std::vector<Buffer> &arguments, std::vector<Buffer> &results,
           int64_t size);
  /// Checks a shape (rows 5 to 8 of a dynamic extent included) against exact
  /// arithmetic.
  void check(const MatmulShape &shape, llvm::StringRef schedule);

  MLIRContext context;
  OwningOpRef<ModuleOp> source, module;
  ::mp::runtime::CudaKernel launch;
  std::vector<::mp::runtime::TensorMap> maps;

private:
  emulator::Launch makeLaunch(std::vector<Buffer> &arguments,
                              std::vector<Buffer> &results, int64_t size,
                              std::vector<char> &workspace);
};

} // namespace mlir::mp::test

#endif // TEST_UNIT_CUDAMATMULFIXTURE_H
