//===- Inputs.h - arguments for the reference interpreter ------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_INPUTS_H
#define CODEGEN_REFERENCE_INPUTS_H

#include "codegen/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir::mp::reference {

/// Which floats inputs are made of.
enum class Draw {
  Adversarial, ///< also those where formats disagree
  Ordinary     ///< from -4 to 4, as values of a model are
};

/// One tensor for each argument of `func`, the same for the same seed on every
/// machine. An argument with the attribute `mp.value` (a dense constant) gets
/// it. Otherwise adversarial floats are a mix of ordinary numbers and of those
/// where formats disagree: zeros of both signs, infinities, NaN, subnormals,
/// ties between two halves, numbers around the f16 and bf16 overflow. Integers
/// are 0, 1, 2 or 3, so that they can be indices; a dynamic size is
/// `dynamicSize`.
llvm::Expected<std::vector<Tensor>> makeInputs(func::FuncOp func, uint64_t seed,
                                               int64_t dynamicSize = 3,
                                               Draw draw = Draw::Adversarial);

/// The tensor of a dense constant.
llvm::Expected<Tensor> fromAttribute(DenseElementsAttr attr);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_INPUTS_H
