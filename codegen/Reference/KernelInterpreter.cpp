//===- KernelInterpreter.cpp - what a kernel means ------------------------===//

#include "codegen/Reference/KernelInterpreter.h"
#include "codegen/Reference/ScalarInterpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::mp::reference;

namespace {
class KernelInterpreter {
public:
  llvm::Expected<std::vector<Tensor>> run(func::FuncOp kernel,
                                          ArrayRef<Tensor> inputs);

private:
  llvm::Error evaluate(Operation *op);
  llvm::Error evaluateGeneric(linalg::GenericOp op);
  llvm::Error evaluateBody(linalg::GenericOp op, ArrayRef<int64_t> index,
                           MutableArrayRef<Tensor> outputs);
  void evaluateReshape(Operation *op);
  void evaluateFill(linalg::FillOp op);

  Scalar read(const Tensor &tensor, int64_t offset) const;
  llvm::Error failAt(Operation *op, const Twine &text) const;

  DenseMap<Value, Tensor> tensors;
  DenseMap<Value, Scalar> scalars;
};
} // namespace

llvm::Error KernelInterpreter::failAt(Operation *op, const Twine &text) const {
  return llvm::createStringError(op->getName().getStringRef() + " " + text);
}

Scalar KernelInterpreter::read(const Tensor &tensor, int64_t offset) const {
  Scalar scalar;
  if (tensor.isFloat())
    scalar.real = tensor.floats[offset];
  else
    scalar.integer = tensor.ints[offset];
  return scalar;
}

/// The number of the element that a map picks of a tensor.
static int64_t offsetOf(AffineMap map, ArrayRef<int64_t> index,
                        const Tensor &tensor) {
  int64_t offset = 0;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    offset = offset * tensor.shape[dim] +
             index[cast<AffineDimExpr>(expr).getPosition()];
  return offset;
}

llvm::Error KernelInterpreter::evaluateBody(linalg::GenericOp op,
                                            ArrayRef<int64_t> index,
                                            MutableArrayRef<Tensor> outputs) {
  Block *body = op.getBody();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [i, input] : llvm::enumerate(op.getDpsInputs())) {
    const Tensor &tensor = tensors.find(input)->second;
    scalars[body->getArgument(i)] =
        read(tensor, offsetOf(maps[i], index, tensor));
  }
  unsigned inputs = op.getNumDpsInputs();
  for (auto [i, tensor] : llvm::enumerate(outputs))
    scalars[body->getArgument(inputs + i)] =
        read(tensor, offsetOf(maps[inputs + i], index, tensor));
  for (Operation &inner : body->without_terminator()) {
    Scalar result;
    if (auto number = dyn_cast<linalg::IndexOp>(inner)) {
      result.integer = index[number.getDim()];
    } else {
      SmallVector<Scalar> operands;
      for (Value operand : inner.getOperands())
        operands.push_back(scalars.lookup(operand));
      if (!evaluateScalar(&inner, operands, result))
        return failAt(&inner, "has no evaluator");
    }
    scalars[inner.getResult(0)] = result;
  }
  for (auto [i, value] :
       llvm::enumerate(body->getTerminator()->getOperands())) {
    Scalar scalar = scalars.lookup(value);
    int64_t offset = offsetOf(maps[inputs + i], index, outputs[i]);
    if (outputs[i].isFloat())
      outputs[i].floats[offset] = scalar.real;
    else
      outputs[i].ints[offset] = scalar.integer;
  }
  return llvm::Error::success();
}

/// How often each loop runs: the extent of a dimension that it alone indexes.
static Shape rangesOf(linalg::GenericOp op,
                      const DenseMap<Value, Tensor> &tensors) {
  Shape ranges(op.getNumLoops(), 1);
  for (auto [value, map] :
       llvm::zip(op->getOperands(), op.getIndexingMapsArray()))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      ranges[cast<AffineDimExpr>(expr).getPosition()] =
          tensors.find(value)->second.shape[dim];
  return ranges;
}

llvm::Error KernelInterpreter::evaluateGeneric(linalg::GenericOp op) {
  std::vector<Tensor> outputs;
  for (Value init : op.getDpsInits())
    outputs.push_back(tensors.find(init)->second);
  llvm::Error error = llvm::Error::success();
  forEachIndex(rangesOf(op, tensors), [&](ArrayRef<int64_t> index, int64_t) {
    if (!error)
      error = evaluateBody(op, index, outputs);
  });
  if (error)
    return error;
  for (auto [result, value] : llvm::zip(op.getResults(), outputs))
    tensors[result] = std::move(value);
  return llvm::Error::success();
}

/// Elements keep their order. A dynamic extent is what the others leave.
void KernelInterpreter::evaluateReshape(Operation *op) {
  Tensor value = tensors.find(op->getOperand(0))->second;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t left = value.numElements();
  Shape shape(type.getShape());
  for (int64_t size : shape)
    left /= ShapedType::isDynamic(size) || size == 0 ? 1 : size;
  for (int64_t &size : shape)
    size = ShapedType::isDynamic(size) ? left : size;
  value.shape = shape;
  tensors[op->getResult(0)] = std::move(value);
}

void KernelInterpreter::evaluateFill(linalg::FillOp op) {
  Tensor value = tensors.find(op.getOutputs().front())->second;
  Scalar scalar = scalars.lookup(op.getInputs().front());
  std::fill(value.floats.begin(), value.floats.end(), scalar.real);
  std::fill(value.ints.begin(), value.ints.end(), scalar.integer);
  tensors[op.getResult(0)] = std::move(value);
}

llvm::Error KernelInterpreter::evaluate(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return evaluateGeneric(generic);
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return evaluateFill(fill), llvm::Error::success();
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return evaluateReshape(op), llvm::Error::success();
  Scalar result;
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    result.integer =
        tensors.find(dim.getSource())->second.shape[*dim.getConstantIndex()];
  } else if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    Shape shape(empty.getType().getShape());
    for (Value size : empty.getDynamicSizes())
      *llvm::find_if(shape, ShapedType::isDynamic) =
          scalars.lookup(size).integer;
    tensors[empty] = Tensor(empty.getType().getElementType(), shape);
    return llvm::Error::success();
  } else if (isa<arith::DivUIOp>(op)) {
    result.integer = scalars.lookup(op->getOperand(0)).integer /
                     scalars.lookup(op->getOperand(1)).integer;
  } else if (!evaluateScalar(op, {}, result)) {
    return failAt(op, "has no evaluator");
  }
  scalars[op->getResult(0)] = result;
  return llvm::Error::success();
}

llvm::Expected<std::vector<Tensor>>
KernelInterpreter::run(func::FuncOp kernel, ArrayRef<Tensor> inputs) {
  if (inputs.size() != kernel.getNumArguments())
    return failAt(kernel, "has another number of arguments");
  for (auto [argument, input] : llvm::zip(kernel.getArguments(), inputs))
    tensors[argument] = input;
  Block &body = kernel.getBody().front();
  for (Operation &op : body.without_terminator())
    if (llvm::Error error = evaluate(&op))
      return std::move(error);
  std::vector<Tensor> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(tensors.find(value)->second);
  return results;
}

llvm::Expected<std::vector<Tensor>>
mlir::mp::reference::evaluateKernel(func::FuncOp kernel,
                                    ArrayRef<Tensor> inputs) {
  return KernelInterpreter().run(kernel, inputs);
}
