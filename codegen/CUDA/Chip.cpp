//===- Chip.cpp - what a kernel must know of a GPU ------------------------===//

#include "codegen/CUDA/Chip.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::mp::cuda;

llvm::ArrayRef<Chip> mlir::mp::cuda::chips() {
  static const Chip rows[] = {
#define CHIP(NAME, PTX, SHARED_BLOCK, SHARED_SM, THREADS_SM, BLOCKS_SM, SMS)   \
  {NAME, PTX, SHARED_BLOCK, SHARED_SM, THREADS_SM, BLOCKS_SM, SMS},
#include "codegen/CUDA/Chips.def"
  };
  return rows;
}

const Chip *mlir::mp::cuda::findChip(llvm::StringRef name) {
  const auto *found =
      llvm::find_if(chips(), [&](const Chip &c) { return c.name == name; });
  return found == chips().end() ? nullptr : found;
}

std::string mlir::mp::cuda::unknownChip(llvm::StringRef name) {
  std::string text = ("unknown target '" + name + "'; known are:").str();
  for (const Chip &chip : chips())
    text += (" " + chip.name).str();
  return text;
}

int64_t mlir::mp::cuda::residentBlocks(const Chip &chip, int64_t threads,
                                       int64_t registers, int64_t sharedBytes) {
  // A warp gets its registers in units of 256.
  int64_t warps = llvm::divideCeil(threads, 32);
  int64_t perWarp = llvm::alignTo(std::max<int64_t>(registers, 1) * 32, 256);
  int64_t blocks = Chip::kRegistersPerSM / (perWarp * warps);
  blocks = std::min(blocks, chip.threadsPerSM / (warps * 32));
  blocks = std::min(blocks,
                    chip.sharedPerSM / (sharedBytes + Chip::kSharedOverhead));
  return std::min(blocks, chip.blocksPerSM);
}
