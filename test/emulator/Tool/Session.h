//===- Session.h - one kernel, its launch and its reference -----*- C++ -*-===//

#ifndef TEST_EMULATOR_TOOL_SESSION_H
#define TEST_EMULATOR_TOOL_SESSION_H

#include "codegen/CUDA/Emitted.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Tool/Values.h"

namespace mlir::mp::emulator {

/// A kernel of the backend contract with arguments, and what it should give.
class Session {
public:
  Session(const cuda::EmittedKernel &emitted,
          std::vector<reference::Tensor> arguments, func::FuncOp func,
          int64_t size);

  /// Evaluates the kernel with the reference interpreter.
  llvm::Error evaluate(func::FuncOp func);

  /// The launch, as the runtime would make it; `resident` blocks for a kernel
  /// that goes through its tiles itself.
  Launch makeLaunch(int64_t resident);
  /// Fills results with NaN, and the workspace with what a launch promises.
  void clear();
  /// Takes the results from memory.
  void readResults();

  std::vector<reference::Tensor> arguments, results, expected;

private:
  Argument mapOf(const ::mp::runtime::TensorMap &map);

  const ::mp::runtime::CudaKernel &launch;
  const std::vector<::mp::runtime::TensorMap> &maps;
  int64_t size;
  bool isDynamic = false;
  /// Arguments, then results; then the workspace.
  std::vector<std::vector<char>> buffers;
  std::vector<char> workspace;
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_TOOL_SESSION_H
