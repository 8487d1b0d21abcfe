//===- SplitK.h - several blocks for the sum of one tile --------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_MATMUL_SPLITK_H
#define MP_CODEGEN_CUDA_MATMUL_SPLITK_H

#include "codegen/CUDA/Matmul/Mainloop.h"

namespace mlir::mp::cuda {

/// Writes this block's accumulators to the workspace; the block of the tile
/// that arrives last adds those of all, in the order of the splits, and runs
/// `rest` on them.
void joinSplits(Frame &frame, const Accumulators &accumulators,
                llvm::function_ref<void(const Accumulators &)> rest);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_SPLITK_H
