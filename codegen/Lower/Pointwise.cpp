//===- Pointwise.cpp - arithmetic of elementwise operators ----------------===//

#include "codegen/Lower/Pointwise.h"
#include "dialect/IR/Arguments.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static Attribute attributeOf(Operation *op, StringRef name) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  return args ? args.get(name) : Attribute();
}

/// The operand that an argument is: "%k" names it, else its place does.
static std::optional<unsigned> placeOf(Operation *op, StringRef name,
                                       unsigned position) {
  Attribute attr = attributeOf(op, name);
  if (!attr)
    return position < op->getNumOperands() ? std::optional(position)
                                           : std::nullopt;
  std::optional<unsigned> k = operandNumber(attr);
  return k && *k < op->getNumOperands() ? k : std::nullopt;
}

Value lower::operandNamed(Operation *op, StringRef name, unsigned position) {
  std::optional<unsigned> k = placeOf(op, name, position);
  return k ? op->getOperand(*k) : Value();
}

std::optional<unsigned> PointwiseCall::operandOf(StringRef name,
                                                 unsigned position) const {
  return placeOf(op, name, position);
}

bool PointwiseCall::has(StringRef name, unsigned position) const {
  return operandOf(name, position) || numberOf(op, name);
}

Value PointwiseCall::argument(StringRef name, unsigned position) {
  if (std::optional<unsigned> k = operandOf(name, position))
    return operands[*k];
  return scalars.number(computeType(), number(name, 0));
}

Value PointwiseCall::value(StringRef name, unsigned position) {
  return scalars.convert(argument(name, position), computeType());
}

/// A number with a fraction makes integers floats.
static bool hasFloatNumber(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  return args && llvm::any_of(args, [](NamedAttribute attr) {
           return isa<FloatAttr>(attr.getValue());
         });
}

Type PointwiseCall::computeType() const {
  MLIRContext *context = op->getContext();
  Type widest = IntegerType::get(context, 1);
  for (Value operand : op->getOperands()) {
    Type type = elementTypeOf(operand);
    if (isa<FloatType>(type))
      return Float32Type::get(context);
    if (type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  }
  if (isa<FloatType>(resultType()) || hasFloatNumber(op))
    return Float32Type::get(context);
  // A truth value is compared with, or added to, a number.
  if (widest.isInteger(1) && !resultType().isInteger(1))
    return resultType();
  return widest;
}

StringRef PointwiseCall::text(StringRef name) const {
  auto attr = dyn_cast_if_present<StringAttr>(attributeOf(op, name));
  return attr ? attr.getValue() : "";
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

template <typename Op>
static Value emitUnary(PointwiseCall &call) {
  return call.scalars.create<Op>(call.first());
}

template <typename Op>
static Value emitBinary(PointwiseCall &call) {
  return call.scalars.create<Op>(call.first(), call.real("other", 1));
}

template <typename Float, typename Integer>
static Value emitArithmetic(PointwiseCall &call) {
  Value a = call.value("self", 0), b = call.value("other", 1);
  return call.computesFloats() ? call.scalars.create<Float>(a, b)
                               : call.scalars.create<Integer>(a, b);
}

/// self + alpha * other, and the like.
template <typename Float, typename Integer>
static Value emitScaled(PointwiseCall &call, StringRef plain,
                        unsigned plainPosition, StringRef scaled,
                        unsigned scaledPosition) {
  Value a = call.value(plain, plainPosition);
  Value b = call.value(scaled, scaledPosition);
  double alpha = call.number("alpha", 1);
  Scalars &s = call.scalars;
  if (alpha != 1) {
    Value factor = s.number(b.getType(), alpha);
    b = call.computesFloats() ? s.mul(b, factor)
                              : s.create<arith::MulIOp>(b, factor);
  }
  return call.computesFloats() ? s.create<Float>(a, b)
                               : s.create<Integer>(a, b);
}

static Value emitAdd(PointwiseCall &call) {
  return emitScaled<arith::AddFOp, arith::AddIOp>(call, "self", 0, "other", 1);
}

static Value emitSub(PointwiseCall &call) {
  return emitScaled<arith::SubFOp, arith::SubIOp>(call, "self", 0, "other", 1);
}

static Value emitRsub(PointwiseCall &call) {
  return emitScaled<arith::SubFOp, arith::SubIOp>(call, "other", 1, "self", 0);
}

static Value emitDiv(PointwiseCall &call) {
  return call.scalars.div(call.first(), call.real("other", 1));
}

static Value emitNeg(PointwiseCall &call) {
  Value a = call.value("self", 0);
  if (call.computesFloats())
    return call.scalars.create<arith::NegFOp>(a);
  return call.scalars.create<arith::SubIOp>(call.scalars.number(a.getType(), 0),
                                            a);
}

static Value emitReciprocal(PointwiseCall &call) {
  return call.scalars.div(call.scalars.number(1), call.first());
}

static Value emitSquare(PointwiseCall &call) {
  Value a = call.first();
  return call.scalars.mul(a, a);
}

/// The powers that PyTorch multiplies out, and the general one.
static Value emitPow(PointwiseCall &call) {
  Scalars &s = call.scalars;
  Value a = call.first();
  double exponent = call.number("exponent", 1);
  if (exponent == 1)
    return a;
  if (exponent == 2)
    return s.mul(a, a);
  if (exponent == 3)
    return s.mul(s.mul(a, a), a);
  if (exponent == 0.5)
    return s.create<math::SqrtOp>(a);
  if (exponent == -0.5)
    return s.create<math::RsqrtOp>(a);
  if (exponent == -1)
    return s.div(s.number(1), a);
  if (exponent == -2)
    return s.div(s.number(1), s.mul(a, a));
  return s.create<math::PowFOp>(a, s.number(exponent));
}

static Value emitClamp(PointwiseCall &call) {
  Value a = call.first();
  if (call.has("min", 1))
    a = call.scalars.create<arith::MaximumFOp>(a, call.real("min", 1));
  if (numberOf(call.getOperation(), "max"))
    a = call.scalars.create<arith::MinimumFOp>(a, call.real("max", 2));
  return a;
}

template <arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers>
static Value emitCompare(PointwiseCall &call) {
  Value a = call.value("self", 0), b = call.value("other", 1);
  Scalars &s = call.scalars;
  if (call.computesFloats())
    return s.create<arith::CmpFOp>(ofFloats, a, b);
  // True is 1, and not -1 as a signed bit is.
  Type wide = s.getBuilder().getI32Type();
  if (a.getType().isInteger(1)) {
    a = s.convert(a, wide);
    b = s.convert(b, wide);
  }
  return s.create<arith::CmpIOp>(ofIntegers, a, b);
}

template <typename Op>
static Value emitBits(PointwiseCall &call) {
  return call.scalars.create<Op>(call.value("self", 0), call.value("other", 1));
}

static Value emitNot(PointwiseCall &call) {
  Value a = call.value("self", 0);
  return call.scalars.create<arith::XOrIOp>(
      a, call.scalars.number(a.getType(), -1));
}

static Value truth(PointwiseCall &call, StringRef name, unsigned position) {
  Type type = call.scalars.getBuilder().getI1Type();
  return call.scalars.convert(call.argument(name, position), type);
}

template <typename Op>
static Value emitLogical(PointwiseCall &call) {
  return call.scalars.create<Op>(truth(call, "self", 0),
                                 truth(call, "other", 1));
}

static Value emitLogicalNot(PointwiseCall &call) {
  Value a = truth(call, "self", 0);
  return call.scalars.create<arith::XOrIOp>(
      a, call.scalars.number(a.getType(), 1));
}

/// Choices are between values of the result's type: nothing is computed.
static Value choose(PointwiseCall &call, Value condition, Value a, Value b) {
  Scalars &s = call.scalars;
  return s.create<arith::SelectOp>(
      s.convert(condition, s.getBuilder().getI1Type()),
      s.convert(a, call.resultType()), s.convert(b, call.resultType()));
}

static Value emitWhere(PointwiseCall &call) {
  return choose(call, call.argument("condition", 0), call.argument("self", 1),
                call.argument("other", 2));
}

static Value emitMaskedFill(PointwiseCall &call) {
  return choose(call, call.argument("mask", 1), call.argument("value", 2),
                call.argument("self", 0));
}

static Value emitCast(PointwiseCall &call) {
  return call.scalars.convert(call.argument("input", 0), call.resultType());
}

static Value emitRound(PointwiseCall &call) {
  Value narrow =
      call.scalars.convert(call.argument("input", 0),
                           cast<RoundOp>(call.getOperation()).getFormat());
  return call.scalars.convert(narrow, call.resultType());
}

PointwiseEmitter lower::pointwiseEmitterOf(Operation *op) {
  static const llvm::StringMap<PointwiseEmitter> emitters = {
#define MP_POINTWISE(NAME, EMIT) {NAME, EMIT},
#include "codegen/Lower/PointwiseOps.def"
  };
  return emitters.lookup(regionOpName(op));
}

Value lower::emitPointwise(Operation *op, Scalars &scalars,
                           ValueRange operands) {
  PointwiseCall call(op, scalars, operands);
  return scalars.convert(pointwiseEmitterOf(op)(call), call.resultType());
}
