//===- Numbers.cpp - arithmetic of update kernels, on vectors -------------===//

#include "codegen/CUDA/Update/Numbers.h"
#include "codegen/CUDA/Rows/Values.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::mp::cuda;

static Value constant(ImplicitLocOpBuilder &b, Attribute scalar, Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, scalar);
  return arith::ConstantOp::create(b, cast<TypedAttr>(scalar));
}

static Type like(Type element, Type shape) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(vector.clone(element)) : element;
}

Value Numbers::real(double value, Value other) const {
  Type type = other.getType();
  return constant(b, b.getFloatAttr(getElementTypeOrSelf(type), value), type);
}

Value Numbers::integer(uint64_t value, Value other) const {
  Type type = other.getType();
  Type element = getElementTypeOrSelf(type);
  APInt number = APInt(64, value).trunc(element.getIntOrFloatBitWidth());
  return constant(b, IntegerAttr::get(element, number), type);
}

Value Numbers::fma(Value x, Value y, Value z) const {
  return LLVM::FMAOp::create(b, x, y, z);
}

Value Numbers::root(Value x) const { return callIntrinsic(b, "llvm.sqrt", x); }

Value Numbers::bitsAs(Type element, Value x) const {
  return arith::BitcastOp::create(b, like(element, x.getType()), x);
}

Value Numbers::widen(Type element, Value x) const {
  Type type = like(element, x.getType());
  if (isa<FloatType>(element))
    return arith::ExtFOp::create(b, type, x);
  return arith::ExtUIOp::create(b, type, x);
}

Value Numbers::narrow(Type element, Value x) const {
  Type type = like(element, x.getType());
  if (isa<FloatType>(element))
    return arith::TruncFOp::create(b, type, x);
  return arith::TruncIOp::create(b, type, x);
}
