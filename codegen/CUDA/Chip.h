//===- Chip.h - what a kernel must know of a GPU ----------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_CHIP_H
#define MP_CODEGEN_CUDA_CHIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::mp::cuda {

/// One row of Chips.def.
struct Chip {
  static constexpr int64_t kRegistersPerSM = 65536;
  /// What the driver adds to a block's shared memory.
  static constexpr int64_t kSharedOverhead = 1024;

  llvm::StringRef name; ///< "sm_80"
  unsigned ptx;         ///< version of PTX: 70 stands for 7.0
  int64_t sharedPerBlock, sharedPerSM;
  int64_t threadsPerSM, blocksPerSM;
  int64_t multiprocessors;
};

llvm::ArrayRef<Chip> chips();

/// The chip of that name; null if there is none.
const Chip *findChip(llvm::StringRef name);

/// What to say where there is none: "unknown target 'sm_75'; known are: ...".
std::string unknownChip(llvm::StringRef name);

/// How many blocks run at once on one multiprocessor.
int64_t residentBlocks(const Chip &chip, int64_t threads, int64_t registers,
                       int64_t sharedBytes);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_CHIP_H
