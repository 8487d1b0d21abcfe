//===- MatmulText.h - matmul kernels as text, for tests ---------*- C++ -*-===//

#ifndef TEST_UNIT_MATMULTEXT_H
#define TEST_UNIT_MATMULTEXT_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace mlir::mp::test {

/// What follows the accumulator.
enum class Tail {
  None,     ///< The f32 accumulator is the result.
  Cast,     ///< result = T(acc)
  Residual, ///< result = T(T(acc + bias[n]) * scale[m] + residual[m, n])
  Gelu,     ///< result = T(gelu(acc + bias[n])), and the f32 sum before
  Mask      ///< result = mask[m, n] ? T(acc + m - n) : 0
};

/// A kernel of the backend contract.
struct MatmulShape {
  llvm::StringRef element = "bf16";
  int64_t m = 128, n = 128, k = 64, batch = 1;
  bool lhsTransposed = false, rhsTransposed = true;
  Tail tail = Tail::Cast;
  /// Which extent is "?" in the text, if any: 'm', 'k' or 'b'.
  char dynamic = 0;
};

/// Arguments: lhs, rhs, then bias (f32), scale (f32), residual (T) or mask (i1)
/// as the tail needs them.
std::string matmulText(const MatmulShape &shape);

} // namespace mlir::mp::test

#endif // TEST_UNIT_MATMULTEXT_H
