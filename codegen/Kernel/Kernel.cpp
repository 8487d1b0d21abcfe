//===- Kernel.cpp - takes a kernel apart ----------------------------------===//

#include "codegen/Kernel/Kernel.h"
#include "codegen/Kernel/Parse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::kernel;

llvm::StringRef mlir::mp::stringifyAccess(Access access) {
  switch (access) {
  case Access::Element:
    return "element";
  case Access::Row:
    return "row";
  case Access::Column:
    return "column";
  case Access::Scalar:
    return "scalar";
  }
  llvm_unreachable("unknown access");
}

/// The static dimensions that are collapsed into the first one of `value`.
static int64_t collapsedFactor(Value value) {
  int64_t factor = 1;
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    for (int64_t dim : collapse.getReassociationIndices().front())
      if (!ShapedType::isDynamic(shape[dim]))
        factor *= shape[dim];
    value = collapse.getSrc();
  }
  return factor;
}

std::optional<int64_t> kernel::dynamicFactor(linalg::GenericOp op) {
  for (Value input : op.getDpsInputs()) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (type && type.getRank() != 0 && type.isDynamicDim(0) &&
        argumentOf(input))
      return collapsedFactor(input);
  }
  return std::nullopt;
}

std::optional<unsigned> mlir::mp::argumentOf(Value value) {
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    value = collapse.getSrc();
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  return argument.getArgNumber();
}

SmallVector<unsigned> mlir::mp::resultsOf(Value value) {
  SmallVector<unsigned> results;
  for (OpOperand &use : value.getUses()) {
    if (isa<func::ReturnOp>(use.getOwner()))
      results.push_back(use.getOperandNumber());
    else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(use.getOwner()))
      llvm::append_range(results, resultsOf(expand.getResult()));
  }
  llvm::sort(results);
  return results;
}

static Value filledScalar(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs().front() : Value();
}

std::optional<APFloat> kernel::filledFloat(Value value) {
  APFloat constant(0.0);
  Value scalar = filledScalar(value);
  if (!scalar || !matchPattern(scalar, m_ConstantFloat(&constant)))
    return std::nullopt;
  return constant;
}

std::optional<APInt> kernel::filledInt(Value value) {
  APInt constant;
  Value scalar = filledScalar(value);
  if (!scalar || !matchPattern(scalar, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant;
}

std::optional<SmallVector<unsigned>> kernel::loopsOf(AffineMap map) {
  if (!map.isProjectedPermutation())
    return std::nullopt;
  SmallVector<unsigned> loops;
  for (AffineExpr expr : map.getResults())
    loops.push_back(cast<AffineDimExpr>(expr).getPosition());
  return loops;
}

Operation *kernel::yieldedOp(linalg::GenericOp op, unsigned position) {
  return op.getBody()->getTerminator()->getOperand(position).getDefiningOp();
}

bool kernel::isReduction(linalg::GenericOp op, unsigned loop) {
  return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

int64_t kernel::extentOf(linalg::GenericOp op, unsigned loop) {
  return op.getStaticLoopRanges()[loop];
}

linalg::GenericOp kernel::findContraction(func::FuncOp func) {
  for (auto generic : func.getOps<linalg::GenericOp>()) {
    unsigned loops = generic.getNumLoops();
    if (loops >= 3 && isReduction(generic, loops - 1))
      return generic;
  }
  return {};
}

bool kernel::allowsContraction(func::FuncOp func) {
  auto attribute = func->getAttrOfType<BoolAttr>("mp.contract");
  return attribute && attribute.getValue();
}

FailureOr<Kernel> mlir::mp::parseKernel(func::FuncOp func) {
  if (failed(checkForm(func)))
    return failure();
  if (linalg::GenericOp contraction = findContraction(func)) {
    FailureOr<MatmulKernel> matmul = parseMatmul(func, contraction);
    if (failed(matmul))
      return failure();
    return Kernel(std::move(*matmul));
  }
  FailureOr<RowKernel> rows = parseRows(func);
  if (failed(rows))
    return failure();
  return Kernel(std::move(*rows));
}

FailureOr<Kernel> mlir::mp::parseKernel(ModuleOp module) {
  auto func = module.lookupSymbol<func::FuncOp>(kKernelName);
  if (!func || !llvm::hasSingleElement(module.getOps()))
    return emitRule(module, 1)
           << "the module of a kernel holds one function, @" << kKernelName;
  return parseKernel(func);
}
