//===- Call.h - one call of a region: its tensors as buffers ----*- C++ -*-===//

#ifndef RUNTIME_TORCH_CALL_H
#define RUNTIME_TORCH_CALL_H

#include "runtime/Launch/Registry.h"
#include <torch/csrc/stable/tensor.h>

namespace mp::launch {

/// Checks the inputs against the kernel's signature, makes the results, and
/// lists the addresses of both. Throws on what does not fit.
class Call {
public:
  /// At multiples of how many bytes inputs must start: of one on the CPU, of 16
  /// on a GPU, which copies so many at once.
  enum Alignment : uintptr_t { Byte = 1, Vector = 16 };

  Call(const runtime::Entry &entry,
       const std::vector<torch::stable::Tensor> &inputs,
       const std::vector<int64_t> &sizes, Alignment alignment);

  /// Inputs, then results.
  std::vector<void *> buffers;
  std::vector<torch::stable::Tensor> results;
  const int64_t *sizes;
  size_t sizeCount;

  /// How many inputs were copied in this process, for they were not dense or
  /// not aligned. The compiler lays them out so that there is none.
  static int64_t copies();

private:
  const void *addressOf(const torch::stable::Tensor &input, size_t number,
                        Alignment alignment);
  void addResult(const runtime::TensorType &type);

  const runtime::Entry &entry;
  /// Keeps copies alive until the kernel has run.
  std::vector<torch::stable::Tensor> copied;
  int32_t deviceType = 0, deviceIndex = 0;
};

} // namespace mp::launch

#endif // RUNTIME_TORCH_CALL_H
