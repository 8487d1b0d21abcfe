//===- Arithmetic.cpp - the body of a linalg.generic on vectors -----------===//

#include "codegen/CUDA/Arithmetic.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::mp::cuda;

namespace {
class Cloner {
public:
  Cloner(KernelBuilder &b, const VectorBody &body) : b(b), body(body) {}
  SmallVector<Value> clone(ValueRange arguments);

private:
  void cloneOp(Operation &op);
  void cloneConstant(arith::ConstantOp op);
  void mapOuterConstants(Operation &op);
  void allowContraction(Operation *op);

  KernelBuilder &b;
  VectorBody body;
  IRMapping mapping;
};
} // namespace

void Cloner::cloneConstant(arith::ConstantOp op) {
  auto type = VectorType::get(body.width, op.getType());
  mapping.map(op.getResult(),
              arith::ConstantOp::create(
                  b, DenseElementsAttr::get(type, Attribute(op.getValue()))));
}

/// Constants may stand outside of the body.
void Cloner::mapOuterConstants(Operation &op) {
  for (Value operand : op.getOperands())
    if (auto constant = operand.getDefiningOp<arith::ConstantOp>())
      if (!mapping.contains(operand))
        cloneConstant(constant);
}

void Cloner::allowContraction(Operation *op) {
  if (!body.contract || !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    return;
  op->setAttr("fastmath",
              arith::FastMathFlagsAttr::get(op->getContext(),
                                            arith::FastMathFlags::contract));
}

void Cloner::cloneOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return cloneConstant(constant);
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return mapping.map(index.getResult(), body.indices[index.getDim()]);
  mapOuterConstants(op);
  Operation *copy = b.clone(op, mapping);
  for (OpResult result : copy->getResults())
    result.setType(VectorType::get(body.width, result.getType()));
  allowContraction(copy);
}

SmallVector<Value> Cloner::clone(ValueRange arguments) {
  Block *block = body.op.getBody();
  for (auto [from, to] : llvm::zip(block->getArguments(), arguments))
    mapping.map(from, to);
  for (Operation &op : block->without_terminator())
    cloneOp(op);
  mapOuterConstants(*block->getTerminator());
  SmallVector<Value> yielded;
  for (Value value : block->getTerminator()->getOperands())
    yielded.push_back(mapping.lookup(value));
  return yielded;
}

SmallVector<Value> mlir::mp::cuda::cloneOnVectors(KernelBuilder &b,
                                                  const VectorBody &body,
                                                  ValueRange arguments) {
  return Cloner(b, body).clone(arguments);
}
