//===- Fragments.h - operands of mma.sync from shared memory ----*- C++ -*-===//
//
// mma.sync multiplies 16 x K by K x 8, K being 16 for f16 and bf16 and 8 for
// TF32: in bytes always the same. A lane holds, with g = lane / 4 and
// t = lane % 4,
//
//   lhs  (g, t) (g + 8, t) (g, t + half) (g + 8, t + half)    4 registers
//   rhs  (t, g) (t + half, g)                                 2 registers
//   acc  (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)      4 x f32
//
// where a position along k stands for what one register holds: two elements of
// 16 bits, or one of 32. ldmatrix.x4 reads a 16 x K part of either operand:
// four 8 x 8 matrices, transposed on the way where the tile's rows are not
// along k. It cannot transpose elements of 32 bits; these are loaded one by
// one.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_FRAGMENTS_H
#define MP_CODEGEN_CUDA_MATMUL_FRAGMENTS_H

#include "codegen/CUDA/Matmul/SharedTile.h"

namespace mlir::mp::cuda {

/// The registers of one operand of one mma.sync.
using Fragment = SmallVector<Value, 4>;

/// k positions of one mma.sync.
inline int64_t mmaDepth(int64_t elementBytes) { return 32 / elementBytes; }

/// Loads what a warp needs of one operand for one mma step along k.
class FragmentLoader {
public:
  FragmentLoader(Frame &frame, const SharedTile &tile);

  /// `stage`: bytes to the stage; `step`: number of the mma step in it.
  SmallVector<Fragment> load(Value stage, int64_t step);

private:
  void placeAlongK();
  void placeAcross();
  void placeElements();
  Value addressOf(Value stage, int64_t step, int64_t part) const;
  SmallVector<Value, 4> loadMatrices(Value address);
  SmallVector<Value, 4> loadElements(Value address, int64_t part);
  Value convert(Value word);
  void split(ArrayRef<Value> registers, SmallVectorImpl<Fragment> &fragments);

  Frame &frame;
  KernelBuilder &b;
  SharedTile tile;
  int64_t parts;     ///< of 16 rows or columns
  bool usesMatrices; ///< ldmatrix, else single elements
  Value warpStart;   ///< of the warp along m or n
  /// Bytes from the stage for one mma step (along k) or one part (across).
  SmallVector<Value> offsets;
  /// For single elements: bytes of the second half of a part.
  SmallVector<Value> secondOffsets;
};

/// The operand that is one everywhere.
Fragment makeOnes(Frame &frame, bool isLhs);

/// acc + lhs * rhs of one mma.sync; all four of an accumulator.
SmallVector<Value, 4> multiply(Frame &frame, const Fragment &lhs,
                               const Fragment &rhs, ValueRange accumulator);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_FRAGMENTS_H
