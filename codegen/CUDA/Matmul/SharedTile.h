//===- SharedTile.h - an operand's tile in shared memory --------*- C++ -*-===//
//
// A tile keeps the order of global memory: its rows are contiguous there. Rows
// run along k (`alongK`: lhs [m, k], rhs [n, k]) or along m or n.
//
// A row is cut into chunks of 16 bytes, what one lane of ldmatrix reads. The
// chunks of a row are permuted by an exclusive or with a number made of the
// row, so that the eight rows that ldmatrix reads at once lie in different
// banks. Shared memory has 32 banks of 4 bytes, so eight chunks fill one line.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_SHAREDTILE_H
#define MP_CODEGEN_CUDA_MATMUL_SHAREDTILE_H

#include "codegen/CUDA/Matmul/Frame.h"

namespace mlir::mp::cuda {

constexpr int64_t kChunkBytes = 16;

struct SharedTile {
  bool isLhs;
  bool alongK;
  int64_t elementBytes;
  int64_t extent; ///< along m or n
  int64_t depth;  ///< along k
  int64_t base;   ///< bytes from the start of a stage

  /// The swizzle repeats after so many rows.
  static constexpr int64_t kSwizzlePeriod = 8;

  int64_t rows() const { return alongK ? extent : depth; }
  int64_t rowElements() const { return alongK ? depth : extent; }
  int64_t rowBytes() const { return rowElements() * elementBytes; }
  int64_t rowChunks() const { return rowBytes() / kChunkBytes; }
  int64_t bytes() const { return rows() * rowBytes(); }
  int64_t chunkElements() const { return kChunkBytes / elementBytes; }

  /// Bytes from the start of its row to a chunk, swizzled.
  Value chunkOffset(KernelBuilder &b, Value row, Value chunk) const;
};

SharedTile lhsTile(const MatmulKernel &kernel, const MatmulSchedule &schedule);
SharedTile rhsTile(const MatmulKernel &kernel, const MatmulSchedule &schedule);

/// Bytes of one stage: both tiles.
int64_t stageBytes(const MatmulKernel &kernel, const MatmulSchedule &schedule);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_SHAREDTILE_H
