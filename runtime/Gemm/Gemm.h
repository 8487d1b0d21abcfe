//===- Gemm.h - matrix products on the CPU ----------------------*- C++ -*-===//
//
// The part of a compiled matmul kernel that does not depend on its arithmetic
// after the accumulator: packing, blocking, and the products themselves, by the
// instructions that the machine has. The compiled part is `finish`, which turns
// rows of f32 sums into the kernel's results.
//
// C[b] = A[b] B[b], accumulated in f32. A is m x k and B is k x n, dense and
// row-major as they are stored; a transposed A is stored k x m, a transposed B
// is stored n x k. Products of bf16 on AMX and AVX512-BF16 flush denormals to
// zero, of operands and of sums; sums run over pairs of products.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_GEMM_GEMM_H
#define RUNTIME_GEMM_GEMM_H

#include "runtime/Kernel.h"

namespace mp::runtime::gemm {

enum class Element : int32_t { F32, BF16, F16 };

/// Bytes of one element.
inline int64_t sizeOf(Element element) {
  return element == Element::F32 ? 4 : 2;
}

struct Operand {
  int32_t buffer = 0; ///< its number among the kernel's buffers
  bool transposed = false;
  bool batched = false; ///< each product of a batch has its own
};

/// Rows and columns of the block of sums that `Finish` gets at a time.
inline constexpr int64_t kBlock = 32;

/// A block of sums, [kBlock][kBlock], and where it lies in the result: `rows`
/// and `columns` of it are there.
struct Block {
  const float *sums;
  int64_t batch, row, column, rows, columns;
};

/// Turns sums into results.
using Finish = void (*)(const Block *block, void *const *buffers,
                        const int64_t *sizes);

/// A sum over the rows, or over the columns, of a stored matrix: the gradient
/// of a bias. It is computed after the products, in f32.
struct Sum {
  int32_t source = 0; ///< its number among the kernel's buffers
  Element element = Element::F32;
  Extent rows, columns;
  bool overRows = true;
  int32_t result = 0;
  Element resultElement = Element::F32;
};

inline constexpr int32_t kMaxSums = 4;

/// What a kernel is compiled with. Plain data.
struct Product {
  Extent batch, m, n, k;
  Element element = Element::F32;
  Operand lhs, rhs;
  Finish finish = nullptr;
  Sum sums[kMaxSums];
  int32_t sumCount = 0;
  const char *isa = nullptr; ///< the instructions to use; null for the best
};

/// The functions of CpuKernel for such a kernel. All are thread-safe.
int32_t phases(const Product &product);
int64_t scratchBytes(const Product &product, const int64_t *sizes,
                     int32_t threads);
int64_t tasks(const Product &product, int32_t phase, const int64_t *sizes,
              int32_t threads);
void run(const Product &product, int32_t phase, int64_t begin, int64_t end,
         void *const *buffers, const int64_t *sizes, void *scratch,
         int32_t threads);

/// The instructions that `isa` names, or those that serve `element` best on
/// this machine: "amx", "avx512_bf16", "avx512", "avx2", "portable". Null if
/// the machine lacks them.
const char *chooseIsa(Element element, const char *isa);

} // namespace mp::runtime::gemm

#endif // RUNTIME_GEMM_GEMM_H
