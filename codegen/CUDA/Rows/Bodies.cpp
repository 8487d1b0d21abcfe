//===- Bodies.cpp - the arithmetic of a stage on vectors ------------------===//

#include "codegen/CUDA/Rows/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

namespace {
/// Clones the ops of one body, in order.
class BodyCloner {
public:
  BodyCloner(ImplicitLocOpBuilder &b, const BodyArguments &arguments)
      : b(b), arguments(arguments) {}

  void clone(Operation &op);
  Value lookup(Value value);
  IRMapping mapping;

private:
  Value cloneExact(Operation &op);

  ImplicitLocOpBuilder &b;
  const BodyArguments &arguments;
};
} // namespace

/// The value of `value`; a constant from outside the body is made on the spot.
Value BodyCloner::lookup(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  assert(constant && "a body reads its arguments and constants");
  Value made = splatOf(b, constant.getValue(), arguments.width);
  mapping.map(value, made);
  return made;
}

/// Ops whose lowering through libdevice would lose the exact rounding.
Value BodyCloner::cloneExact(Operation &op) {
  auto operand = [&](unsigned i) { return lookup(op.getOperand(i)); };
  return TypeSwitch<Operation &, Value>(op)
      .Case<math::SqrtOp>([&](auto) -> Value {
        return callIntrinsic(b, "llvm.sqrt", operand(0));
      })
      .Case<math::AbsFOp>([&](auto) -> Value {
        return callIntrinsic(b, "llvm.fabs", operand(0));
      })
      .Case<math::FmaOp>([&](auto) -> Value {
        return LLVM::FMAOp::create(b, operand(0), operand(1), operand(2));
      })
      .Default([](Operation &) { return Value(); });
}

/// The flags that let a multiplication and an addition become one.
static void allowContraction(Operation *op) {
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    op->setAttr("fastmath",
                arith::FastMathFlagsAttr::get(op->getContext(),
                                              arith::FastMathFlags::contract));
}

void BodyCloner::clone(Operation &op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    mapping.map(index.getResult(), arguments.indices[index.getDim()]);
    return;
  }
  if (isa<arith::ConstantOp>(op)) {
    lookup(op.getResult(0));
    return;
  }
  if (Value value = cloneExact(op)) {
    mapping.map(op.getResult(0), value);
    return;
  }
  OperationState state(b.getLoc(), op.getName());
  for (Value operand : op.getOperands())
    state.addOperands(lookup(operand));
  for (Type type : op.getResultTypes())
    state.addTypes(typeOf(type, arguments.width));
  state.addAttributes(op.getAttrs());
  Operation *made = b.create(state);
  if (arguments.contract)
    allowContraction(made);
  mapping.map(op.getResults(), made->getResults());
}

SmallVector<Value> cuda::cloneBody(ImplicitLocOpBuilder &b,
                                   linalg::GenericOp op,
                                   const BodyArguments &arguments,
                                   Operation *combiner) {
  BodyCloner cloner(b, arguments);
  Block &body = *op.getBody();
  for (auto [argument, value] :
       llvm::zip(body.getArguments(), arguments.values))
    if (value)
      cloner.mapping.map(argument, value);
  for (Operation &each : body.without_terminator())
    if (&each != combiner)
      cloner.clone(each);

  SmallVector<Value> results;
  if (combiner) {
    BlockArgument accumulator = body.getArguments().back();
    unsigned other = combiner->getOperand(0) == accumulator ? 1 : 0;
    results.push_back(cloner.lookup(combiner->getOperand(other)));
    return results;
  }
  for (Value yielded : body.getTerminator()->getOperands())
    results.push_back(cloner.lookup(yielded));
  return results;
}

Value cuda::combine(ImplicitLocOpBuilder &b, Operation *combiner, Value left,
                    Value right) {
  OperationState state(b.getLoc(), combiner->getName());
  state.addOperands({left, right});
  state.addTypes(left.getType());
  state.addAttributes(combiner->getAttrs());
  return b.create(state)->getResult(0);
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

TypedAttr cuda::neutralOf(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  Builder b(type.getContext());
  if (!isa<FloatType>(type))
    return b.getZeroAttr(type);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return b.getFloatAttr(type, APFloat::getInf(semantics, /*Negative=*/true));
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(combiner))
    return b.getFloatAttr(type, APFloat::getInf(semantics));
  return b.getFloatAttr(type, APFloat::getZero(semantics));
}
