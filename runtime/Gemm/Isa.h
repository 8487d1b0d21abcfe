//===- Isa.h - products of one instruction set ------------------*- C++ -*-===//
//
// Every instruction set multiplies a panel of kRows rows of A by a panel of
// kColumns columns of B, both over a slice of k. Panels are packed; a panel of
// A that is stored plainly is read where it is, if the instructions can.
//
// A packed panel of f32 is [k][kColumns] for B and [kRows][k] for A.
// A packed panel of bf16 has, for each 32 values of k (zeros at the end), two
// tiles of 1 KB: for B the columns 0-15 and 16-31, each as [16][16][2], pairs
// of k outermost; for A the rows 0-15 and 16-31, each as [16][32].
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_GEMM_ISA_H
#define RUNTIME_GEMM_ISA_H

#include "runtime/Gemm/Gemm.h"

namespace mp::runtime::gemm {

inline constexpr int64_t kRows = kBlock;
inline constexpr int64_t kColumns = kBlock;
/// k of packed panels is a multiple of this.
inline constexpr int64_t kDepth = 32;

/// A panel of A: `row` and `tile` are distances in bytes between rows, and
/// between two slices of kDepth values of k.
struct Panel {
  const void *data;
  int64_t row, tile, half; ///< `half`: from row 0 to row 16
};

struct Isa {
  const char *name;
  /// What the products read: bf16 or f32.
  Element packed;
  bool (*isSupported)();
  /// Before and after the products of a task.
  void (*begin)();
  void (*end)();
  /// c += a b over `slices` slices of kDepth; c = a b if `isFirst`. c is kRows
  /// x kColumns and dense.
  void (*multiply)(const Panel &a, const void *b, int64_t slices, float *c,
                   bool isFirst);
};

extern const Isa kAMX, kAVX512BF16, kAVX512, kAVX2, kPortable;

/// Panels that are packed together where a stored row crosses them: reading
/// longer pieces of a row is what takes the time.
inline constexpr int64_t kGroup = 8;

/// Panels to pack from a stored matrix: `own` are its columns if it is B, its
/// rows if it is A.
struct Source {
  const void *data; ///< the first element of the first panel
  int64_t stride;   ///< elements between stored rows
  bool ownIsRow;    ///< a stored row is one row of A, or one column of B
  int64_t own;      ///< up to kGroup panels of them
  int64_t depth;    ///< values of k
};

/// How elements of a matrix become packed panels, `panelBytes` apart.
struct Pack {
  Element source;
  Element packed;
  void (*rhs)(const Source &source, char *panels, int64_t panelBytes);
  void (*lhs)(const Source &source, char *panels, int64_t panelBytes);
};

/// The packing from one type to another, by the best instructions there are.
const Pack &packing(Element source, Element packed);

} // namespace mp::runtime::gemm

#endif // RUNTIME_GEMM_ISA_H
