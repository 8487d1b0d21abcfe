//===- Bodies.cpp - the arithmetic of a kernel on vectors -----------------===//

#include "codegen/Kernel/Bodies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Type mlir::mp::typeOf(Type element, int64_t width) {
  return width == 1 ? element : VectorType::get({width}, element);
}

int64_t mlir::mp::widthOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

Value mlir::mp::constantOf(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

Value mlir::mp::splatOf(ImplicitLocOpBuilder &b, TypedAttr value,
                        int64_t width) {
  if (width != 1)
    value = DenseElementsAttr::get(VectorType::get({width}, value.getType()),
                                   Attribute(value));
  return arith::ConstantOp::create(b, value);
}

Value mlir::mp::broadcastTo(ImplicitLocOpBuilder &b, Value scalar,
                            int64_t width) {
  if (width == 1)
    return scalar;
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

Value mlir::mp::indicesFrom(ImplicitLocOpBuilder &b, Value first,
                            int64_t width) {
  Type index = b.getIndexType();
  Value value = arith::IndexCastOp::create(b, index, first);
  if (width == 1)
    return value;
  SmallVector<Attribute> steps;
  for (int64_t step = 0; step < width; ++step)
    steps.push_back(b.getIndexAttr(step));
  Value offsets = arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({width}, index), steps));
  return arith::AddIOp::create(b, broadcastTo(b, value, width), offsets);
}

Value mlir::mp::scaled(ImplicitLocOpBuilder &b, Value a, int64_t factor,
                       Value c) {
  if (factor != 1)
    a = arith::MulIOp::create(b, a, constantOf(b, factor));
  return c ? arith::AddIOp::create(b, a, c) : a;
}

Type mlir::mp::storedType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8)
                              : element;
}

int64_t mlir::mp::storedBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

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
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(lookup(operand));
  OperationState state(b.getLoc(), op.getName());
  state.addOperands(operands);
  for (Type type : op.getResultTypes())
    state.addTypes(typeOf(type, arguments.width));
  state.addAttributes(op.getAttrs());
  Operation *made = b.create(state);
  if (arguments.contract)
    allowContraction(made);
  mapping.map(op.getResults(), made->getResults());
}

SmallVector<Value> mlir::mp::cloneBody(ImplicitLocOpBuilder &b,
                                       linalg::GenericOp op,
                                       const BodyArguments &arguments,
                                       Operation *combiner) {
  BodyCloner cloner(b, arguments);
  Block &body = *op.getBody();
  // The block may have further arguments, for results.
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

bool mlir::mp::readsIndex(linalg::GenericOp op) {
  return !op.getBody()->getOps<linalg::IndexOp>().empty();
}

Value mlir::mp::combine(ImplicitLocOpBuilder &b, Operation *combiner,
                        Value left, Value right) {
  OperationState state(b.getLoc(), combiner->getName());
  state.addOperands({left, right});
  state.addTypes(left.getType());
  state.addAttributes(combiner->getAttrs());
  return b.create(state)->getResult(0);
}
