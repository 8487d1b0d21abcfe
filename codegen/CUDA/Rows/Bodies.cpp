//===- Bodies.cpp - the arithmetic of a stage on vectors ------------------===//

#include "codegen/CUDA/Rows/Values.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Ops whose lowering through libdevice would lose the exact rounding.
static Value cloneExact(ImplicitLocOpBuilder &b, Operation &op,
                        ValueRange operands) {
  return TypeSwitch<Operation &, Value>(op)
      .Case<math::SqrtOp>([&](auto) -> Value {
        return callIntrinsic(b, "llvm.sqrt", operands[0]);
      })
      .Case<math::AbsFOp>([&](auto) -> Value {
        return callIntrinsic(b, "llvm.fabs", operands[0]);
      })
      .Case<math::FmaOp>([&](auto) -> Value {
        return LLVM::FMAOp::create(b, operands[0], operands[1], operands[2]);
      })
      .Default([](Operation &) { return Value(); });
}

SmallVector<Value> cuda::cloneBody(ImplicitLocOpBuilder &b,
                                   linalg::GenericOp op,
                                   const BodyArguments &arguments,
                                   Operation *combiner) {
  return mlir::mp::cloneBody(b, op, arguments, combiner,
                             [&](Operation &each, ValueRange operands) {
                               return cloneExact(b, each, operands);
                             });
}

Value cuda::combineElements(ImplicitLocOpBuilder &b, Operation *combiner,
                            Value vector) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  SmallVector<Value> values;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
    values.push_back(vector::ExtractOp::create(b, vector, i));
  while (values.size() > 1) {
    size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i)
      values[i] = combine(b, combiner, values[i], values[i + half]);
    values.truncate(half);
  }
  return values.front();
}
