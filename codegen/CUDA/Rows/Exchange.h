//===- Exchange.h - partial results between the threads of a row -*- C++
//-*-===//

#ifndef MP_CODEGEN_CUDA_ROWS_EXCHANGE_H
#define MP_CODEGEN_CUDA_ROWS_EXCHANGE_H

#include "codegen/CUDA/Rows/Values.h"

namespace mlir::mp::cuda {

/// The threads that share a row, as a part of the block.
struct RowThreads {
  int64_t threads, groups;
  /// i64 position in the block.
  Value thread;

  int64_t warps() const { return llvm::divideCeil(threads * groups, 32); }
  bool needsShared() const { return threads > 32; }
};

/// A partial result of a reduction.
struct Partial {
  Operation *combiner;
  Value value;
};

/// Shared memory of a kernel, by name. All of it is static.
Value sharedAddress(ImplicitLocOpBuilder &b, StringRef name);

/// Declares it in the module that `b` stands in.
void declareShared(OpBuilder &b, Location loc, StringRef name, Type element,
                   int64_t count);

/// The value of the lane whose number differs by `mask`. All lanes take part.
Value shuffle(ImplicitLocOpBuilder &b, Value value, int64_t mask);

/// Joins the partial results of all threads of a row; each thread gets the
/// same bits. `slot` numbers the first partial in shared memory.
void joinThreads(ImplicitLocOpBuilder &b, const RowThreads &threads,
                 MutableArrayRef<Partial> partials, unsigned slot);

/// Names of shared memory: partial results of warps, whether this block is the
/// last one, column sums of the groups of a block.
inline constexpr llvm::StringLiteral kSlots = "slots";
inline constexpr llvm::StringLiteral kLast = "last";
inline constexpr llvm::StringLiteral kColumns = "columns";

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_ROWS_EXCHANGE_H
