//===- Body.cpp - the arithmetic of an epilogue on two elements -----------===//

#include "codegen/CUDA/Hopper/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::mp::cuda;

static VectorType pairOf(Type type) { return VectorType::get({2}, type); }

static Value cloneConstant(ImplicitLocOpBuilder &b, arith::ConstantOp op) {
  VectorType type = pairOf(op.getType());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, cast<Attribute>(op.getValue())));
}

static void allowContraction(Operation *op) {
  if (auto arithmetic = dyn_cast<arith::ArithFastMathInterface>(op))
    op->setAttr(arithmetic.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(),
                                              arith::FastMathFlags::contract));
}

static void cloneOp(ImplicitLocOpBuilder &b, Operation &op, IRMapping &mapping,
                    bool contract) {
  Operation *clone = b.clone(op, mapping);
  for (OpResult result : clone->getResults())
    result.setType(pairOf(result.getType()));
  if (contract)
    allowContraction(clone);
}

SmallVector<Value>
hopper::cloneOnPairs(ImplicitLocOpBuilder &b, linalg::GenericOp generic,
                     ArrayRef<Value> inputs,
                     llvm::function_ref<Value(unsigned)> index, bool contract) {
  Block *body = generic.getBody();
  IRMapping mapping;
  mapping.map(body->getArguments().take_front(inputs.size()), inputs);
  for (Operation &op : body->without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      mapping.map(constant.getResult(), cloneConstant(b, constant));
    else if (auto loop = dyn_cast<linalg::IndexOp>(op))
      mapping.map(loop.getResult(), index(loop.getDim()));
    else
      cloneOp(b, op, mapping, contract);
  }
  return llvm::map_to_vector(
      body->getTerminator()->getOperands(),
      [&](Value yielded) { return mapping.lookup(yielded); });
}
