//===- Libdevice.h - NVIDIA's mathematical functions ------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_LIBDEVICE_H
#define MP_CODEGEN_CUDA_LIBDEVICE_H

#include "codegen/CUDA/Lowering.h"

namespace mlir::mp::cuda {

/// Links what `module` calls of libdevice into it; needs no libdevice if that
/// is nothing.
LogicalResult linkLibdevice(llvm::Module &module,
                            const LoweringOptions &options, Location location);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_LIBDEVICE_H
