//===- Form.cpp - rules K1 to K4 of the backend contract ------------------===//

#include "codegen/Kernel/Parse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::kernel;

InFlightDiagnostic kernel::emitRule(Operation *op, int rule) {
  return op->emitError() << "rule K" << rule << ": ";
}

static bool isElementType(Type type) {
  return type.isF16() || type.isBF16() || type.isF32() ||
         type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

static LogicalResult checkBorderType(func::FuncOp func, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isElementType(tensor.getElementType()) ||
      tensor.getEncoding())
    return emitRule(func, 1) << "unsupported argument or result type " << type;
  for (unsigned i = 1, e = tensor.getRank(); i < e; ++i)
    if (tensor.isDynamicDim(i))
      return emitRule(func, 2)
             << "only the first dimension may be dynamic, not dimension " << i
             << " of " << type;
  return success();
}

static const llvm::StringSet<> &scalarOps() {
  static const llvm::StringSet<> names{
#define SCALAR_OP(NAME) NAME,
#include "codegen/Kernel/ScalarOps.def"
  };
  return names;
}

static bool hasFastMath(Operation *op) {
  auto interface = dyn_cast<arith::ArithFastMathInterface>(op);
  return interface && interface.getFastMathFlagsAttr() &&
         interface.getFastMathFlagsAttr().getValue() !=
             arith::FastMathFlags::none;
}

static LogicalResult checkBody(linalg::GenericOp generic) {
  for (Operation &op : generic.getBody()->without_terminator()) {
    if (!scalarOps().contains(op.getName().getStringRef()) &&
        !isa<linalg::IndexOp>(op))
      return emitRule(&op, 4)
             << op.getName() << " is no scalar op that backends lower";
    if (hasFastMath(&op))
      return emitRule(&op, 4) << "fast-math flags are not allowed";
  }
  return success();
}

static LogicalResult checkTopLevel(Operation &op) {
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    if (!argumentOf(collapse.getSrc()))
      return emitRule(&op, 3) << "only arguments may be collapsed";
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    if (resultsOf(expand.getResult()).empty())
      return emitRule(&op, 3) << "only results may be expanded";
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return checkBody(generic);
  if (!isa<arith::ConstantOp, tensor::DimOp, tensor::EmptyOp, linalg::FillOp,
           tensor::CollapseShapeOp, tensor::ExpandShapeOp, func::ReturnOp,
           arith::DivUIOp, arith::DivSIOp, arith::MulIOp>(op))
    return emitRule(&op, 3) << op.getName() << " may not stand in a kernel";
  return success();
}

LogicalResult kernel::checkForm(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return emitRule(func, 1) << "a kernel has one block";
  for (TypeRange types :
       {TypeRange(func.getArgumentTypes()), TypeRange(func.getResultTypes())})
    for (Type type : types)
      if (failed(checkBorderType(func, type)))
        return failure();
  for (Operation &op : func.getBody().front())
    if (failed(checkTopLevel(op)))
      return failure();
  return success();
}
