//===- ScalarInterpreter.cpp - scalar arith and math ----------------------===//

#include "codegen/Reference/ScalarInterpreter.h"
#include "codegen/Reference/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp::reference;

using Real = double (*)(ArrayRef<Scalar>);
using Integer = int64_t (*)(ArrayRef<Scalar>);

//===----------------------------------------------------------------------===//
// Functions. Of f32 operands they are exact in f64 or nearly so, and rounded
// once by the caller.
//===----------------------------------------------------------------------===//

/// NaN if either is, as arith.maximumf; zeros are ordered.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == b)
    return std::signbit(a) ? b : a;
  return std::max(a, b);
}

static double minimum(double a, double b) { return -maximum(-a, -b); }

#define REAL(NAME, EXPR)                                                       \
  {NAME, [](ArrayRef<Scalar> v) -> double {                                    \
     double a = v[0].real;                                                     \
     double b = v.size() > 1 ? v[1].real : 0;                                  \
     (void)b;                                                                  \
     return EXPR;                                                              \
   }}

static const llvm::StringMap<Real> &realFunctions() {
  static const llvm::StringMap<Real> functions = {
      REAL("arith.addf", a + b),
      REAL("arith.subf", a - b),
      REAL("arith.mulf", a * b),
      REAL("arith.divf", a / b),
      REAL("arith.negf", -a),
      REAL("arith.extf", a),
      REAL("arith.truncf", a),
      REAL("arith.maximumf", maximum(a, b)),
      REAL("arith.minimumf", minimum(a, b)),
      REAL("arith.maxnumf", std::fmax(a, b)),
      REAL("arith.minnumf", std::fmin(a, b)),
      REAL("math.absf", std::fabs(a)),
      REAL("math.ceil", std::ceil(a)),
      REAL("math.copysign", std::copysign(a, b)),
      REAL("math.cos", std::cos(a)),
      REAL("math.erf", std::erf(a)),
      REAL("math.exp", std::exp(a)),
      REAL("math.exp2", std::exp2(a)),
      REAL("math.expm1", std::expm1(a)),
      REAL("math.floor", std::floor(a)),
      REAL("math.fma", std::fma(a, b, v[2].real)),
      REAL("math.log", std::log(a)),
      REAL("math.log1p", std::log1p(a)),
      REAL("math.powf", std::pow(a, b)),
      REAL("math.roundeven", std::nearbyint(a)),
      REAL("math.rsqrt", 1 / std::sqrt(a)),
      REAL("math.sin", std::sin(a)),
      REAL("math.sqrt", std::sqrt(a)),
      REAL("math.tanh", std::tanh(a)),
  };
  return functions;
}
#undef REAL

#define INTEGER(NAME, EXPR)                                                    \
  {NAME, [](ArrayRef<Scalar> v) -> int64_t {                                   \
     int64_t a = v[0].integer;                                                 \
     int64_t b = v.size() > 1 ? v[1].integer : 0;                              \
     (void)b;                                                                  \
     return EXPR;                                                              \
   }}

static const llvm::StringMap<Integer> &integerFunctions() {
  static const llvm::StringMap<Integer> functions = {
      INTEGER("arith.addi", a + b),  INTEGER("arith.subi", a - b),
      INTEGER("arith.muli", a * b),  INTEGER("arith.andi", a & b),
      INTEGER("arith.ori", a | b),   INTEGER("arith.xori", a ^ b),
      INTEGER("arith.shli", a << b), INTEGER("arith.shrsi", a >> b),
      INTEGER("arith.extsi", a),     INTEGER("arith.extui", a),
      INTEGER("arith.trunci", a),    INTEGER("arith.index_cast", a),
  };
  return functions;
}
#undef INTEGER

//===----------------------------------------------------------------------===//
// Comparisons and conversions
//===----------------------------------------------------------------------===//

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  llvm::APFloat x(a), y(b);
  return arith::applyCmpPredicate(predicate, x, y);
}

static bool compareIntegers(arith::CmpIPredicate predicate, int64_t a,
                            int64_t b) {
  return arith::applyCmpPredicate(predicate, llvm::APInt(64, a, true),
                                  llvm::APInt(64, b, true));
}

/// Stores a value in the result's type as a tensor element would be.
static void store(Type type, Scalar &result, double real, int64_t integer,
                  bool isReal) {
  Tensor cell(type, {});
  if (isReal)
    cell.set(0, real);
  else
    cell.setInt(0, integer);
  if (cell.isFloat())
    result.real = cell.floats[0];
  else
    result.integer = cell.ints[0];
}

static bool evaluateConstant(arith::ConstantOp op, Scalar &result) {
  if (auto real = dyn_cast<FloatAttr>(op.getValue()))
    result.real = real.getValueAsDouble();
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    result.integer = integer.getType().isInteger(1)
                         ? int64_t(integer.getValue().getBoolValue())
                         : integer.getValue().getSExtValue();
  else
    return false;
  return true;
}

/// Another type of the same width for the same bits.
static void reinterpret(Type from, Type to, Scalar value, Scalar &result) {
  unsigned width = to.getIntOrFloatBitWidth();
  llvm::APInt bits(width, uint64_t(value.integer), /*isSigned=*/true,
                   /*implicitTrunc=*/true);
  bool isInexact = false;
  if (auto type = dyn_cast<FloatType>(from)) {
    llvm::APFloat real(value.real);
    real.convert(type.getFloatSemantics(),
                 llvm::RoundingMode::NearestTiesToEven, &isInexact);
    bits = real.bitcastToAPInt();
  }
  result.integer = bits.getSExtValue();
  if (auto type = dyn_cast<FloatType>(to)) {
    llvm::APFloat real(type.getFloatSemantics(), bits);
    real.convert(llvm::APFloat::IEEEdouble(),
                 llvm::RoundingMode::NearestTiesToEven, &isInexact);
    result.real = real.convertToDouble();
  }
}

bool mlir::mp::reference::evaluateScalar(Operation *op,
                                         ArrayRef<Scalar> operands,
                                         Scalar &result) {
  Type type = op->getResult(0).getType();
  StringRef name = op->getName().getStringRef();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return evaluateConstant(constant, result);
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    result.integer = compareFloats(compare.getPredicate(), operands[0].real,
                                   operands[1].real);
    return true;
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    result.integer = compareIntegers(compare.getPredicate(),
                                     operands[0].integer, operands[1].integer);
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    result = operands[0].integer ? operands[1] : operands[2];
    return true;
  }
  if (isa<arith::BitcastOp>(op))
    return reinterpret(op->getOperand(0).getType(), type, operands[0], result),
           true;
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return store(type, result, 0, operands[0].integer, false), true;
  if (isa<arith::FPToSIOp>(op))
    return store(type, result, operands[0].real, 0, true), true;
  if (Real function = realFunctions().lookup(name))
    return store(type, result, function(operands), 0, true), true;
  if (Integer function = integerFunctions().lookup(name))
    return store(type, result, 0, function(operands), false), true;
  return false;
}
