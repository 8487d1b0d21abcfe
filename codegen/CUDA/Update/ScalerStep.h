//===- ScalerStep.h - the loss scaler's step as ops -------------*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_UPDATE_SCALERSTEP_H
#define MP_CODEGEN_CUDA_UPDATE_SCALERSTEP_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "runtime/LossScaler.h"

namespace mlir::mp::cuda {

/// updateScale of runtime/LossScaler.h on the ScalerState behind `state`;
/// `flags` (i32) are bits of NonFinite. For one thread.
void emitScalerStep(ImplicitLocOpBuilder &b, const mpopt::ScalerRule &rule,
                    Value state, Value flags);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_SCALERSTEP_H
