//===- PrecisionInterfaces.cpp - default answers --------------------------===//

#include "dialect/IR/PrecisionInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::mp;

#include "dialect/IR/PrecisionInterfaces.cpp.inc"

llvm::SmallVector<unsigned> mlir::mp::defaultValueOperands(Operation *op) {
  llvm::SmallVector<unsigned> operands;
  if (op->getNumResults() == 0)
    return operands;
  auto result = dyn_cast<TensorType>(op->getResult(0).getType());
  if (!result)
    return operands;
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<TensorType>(value.getType());
    if (type && type.getElementType() == result.getElementType())
      operands.push_back(i);
  }
  return operands;
}
