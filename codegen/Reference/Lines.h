//===- Lines.h - the lines of a tensor along a dimension -------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_LINES_H
#define CODEGEN_REFERENCE_LINES_H

#include "codegen/Reference/Tensor.h"

namespace mlir::mp::reference {

/// Calls `visit` with the offsets of the elements along `dim`, for each line.
inline void forEachLine(const Tensor &input, int64_t dim,
                        llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  int64_t stride = 1;
  for (int64_t d = dim + 1; d < input.rank(); ++d)
    stride *= input.shape[d];
  int64_t size = input.rank() ? input.shape[dim] : 1;
  int64_t outer = size ? input.numElements() / (size * stride) : 0;
  std::vector<int64_t> line(size);
  for (int64_t o = 0; o != outer; ++o)
    for (int64_t s = 0; s != stride; ++s) {
      for (int64_t k = 0; k != size; ++k)
        line[k] = (o * size + k) * stride + s;
      visit(line);
    }
}

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_LINES_H
