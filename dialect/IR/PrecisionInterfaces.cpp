//===- PrecisionInterfaces.cpp - default answers --------------------------===//

#include "dialect/IR/PrecisionInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::mp;

#include "dialect/IR/PrecisionInterfaces.cpp.inc"

/// True if only indices or only masks are among the operands that are no
/// values. A mask and integers together are where(mask, x, integers): values
/// again.
static bool choosesElements(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || precision.getOpKind() != OpKind::Gather)
    return false;
  bool hasMask = false, hasIndex = false;
  for (Type type : op->getOperandTypes()) {
    auto tensor = dyn_cast<TensorType>(type);
    if (!tensor || !tensor.getElementType().isInteger())
      continue;
    (tensor.getElementType().isInteger(1) ? hasMask : hasIndex) = true;
  }
  return !hasMask || !hasIndex;
}

llvm::SmallVector<unsigned> mlir::mp::defaultValueOperands(Operation *op) {
  if (op->getNumResults() == 0)
    return {};
  auto result = dyn_cast<TensorType>(op->getResult(0).getType());
  if (!result)
    return {};
  llvm::SmallVector<unsigned> operands;
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<TensorType>(value.getType());
    if (!type) {
      if (isa<FloatType>(value.getType()))
        return {}; // a symbolic number that may be a filler
      continue;    // a symbolic size
    }
    if (type.getElementType() == result.getElementType())
      operands.push_back(i);
    else if (!type.getElementType().isInteger() || !choosesElements(op))
      return {}; // cat of f32 and f16, where of f32 and i64
  }
  return operands;
}

OpKind mlir::mp::opKindOf(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision ? precision.getOpKind() : OpKind::Unknown;
}
