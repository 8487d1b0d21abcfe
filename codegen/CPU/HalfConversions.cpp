//===- HalfConversions.cpp - f16 without instructions for it --------------===//

#include "codegen/CPU/HalfConversions.h"
#include "codegen/Kernel/Bodies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
/// Arithmetic on bits, scalars or vectors like those of an op.
class Bits {
public:
  Bits(OpBuilder &builder, Location loc, Type like)
      : b(loc, builder), width(widthOf(like)) {}

  Value bits(int32_t value) {
    return splatOf(b, b.getI32IntegerAttr(value), width);
  }
  template <typename Op>
  Value make(Value left, Value right) {
    return Op::create(b, left, right);
  }
  Value isLess(Value left, Value right) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, left, right);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  Value asFloat(Value value) {
    return cast<arith::BitcastOp>(value, b.getF32Type());
  }
  Value asBits(Value value) {
    return cast<arith::BitcastOp>(value, b.getI32Type());
  }
  template <typename Op>
  Value cast(Value value, Type element) {
    return Op::create(b, typeOf(element, width), value);
  }

  ImplicitLocOpBuilder b;

private:
  int64_t width;
};
} // namespace

/// The exponent moves by a multiplication, which also makes denormals normal.
static Value widen(Bits &m, Value half) {
  Value given = m.cast<arith::ExtUIOp>(
      m.cast<arith::BitcastOp>(half, m.b.getI16Type()), m.b.getI32Type());
  Value magnitude = m.make<arith::AndIOp>(given, m.bits(0x7fff));
  Value sign = m.make<arith::ShLIOp>(
      m.make<arith::AndIOp>(given, m.bits(0x8000)), m.bits(16));
  Value moved = m.make<arith::ShLIOp>(magnitude, m.bits(13));
  Value power = m.asFloat(m.bits(0x77800000)); // 2^112
  Value finite = m.asBits(m.make<arith::MulFOp>(m.asFloat(moved), power));
  Value special = m.make<arith::OrIOp>(moved, m.bits(0x7f800000));
  Value isFinite = m.isLess(magnitude, m.bits(0x7c00));
  Value result = m.select(isFinite, finite, special);
  return m.asFloat(m.make<arith::OrIOp>(result, sign));
}

/// A normal number is rounded by an addition below its last place; for a
/// denormal, the addition of 0.5 puts its last place at f32's.
static Value narrow(Bits &m, Value value) {
  Value given = m.asBits(value);
  Value magnitude = m.make<arith::AndIOp>(given, m.bits(0x7fffffff));
  Value odd = m.make<arith::AndIOp>(
      m.make<arith::ShRUIOp>(magnitude, m.bits(13)), m.bits(1));
  Value based = m.make<arith::AddIOp>(magnitude, m.bits(0xfff - (112 << 23)));
  Value normal =
      m.make<arith::ShRUIOp>(m.make<arith::AddIOp>(based, odd), m.bits(13));
  Value half = m.bits(0x3f000000); // 0.5
  Value denormal = m.make<arith::SubIOp>(
      m.asBits(m.make<arith::AddFOp>(m.asFloat(magnitude), m.asFloat(half))),
      half);
  Value isNaN = m.isLess(m.bits(0x7f800000), magnitude);
  Value large = m.select(isNaN, m.bits(0x7e00), m.bits(0x7c00));
  Value isDenormal = m.isLess(magnitude, m.bits(113 << 23));
  Value isFinite = m.isLess(magnitude, m.bits(143 << 23));
  Value result =
      m.select(isFinite, m.select(isDenormal, denormal, normal), large);
  Value sign = m.make<arith::ShRUIOp>(
      m.make<arith::AndIOp>(given, m.bits(INT32_MIN)), m.bits(16));
  Value bits = m.cast<arith::TruncIOp>(m.make<arith::OrIOp>(result, sign),
                                       m.b.getI16Type());
  return m.cast<arith::BitcastOp>(bits, m.b.getF16Type());
}

namespace {
struct ExpandHalfConversions
    : PassWrapper<ExpandHalfConversions, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandHalfConversions)

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
        return;
      Type from = getElementTypeOrSelf(op->getOperand(0).getType());
      Type to = getElementTypeOrSelf(op->getResult(0).getType());
      if (!(from.isF16() && to.isF32()) && !(from.isF32() && to.isF16()))
        return;
      OpBuilder builder(op);
      Bits bits(builder, op->getLoc(), op->getOperand(0).getType());
      Value made = from.isF16() ? widen(bits, op->getOperand(0))
                                : narrow(bits, op->getOperand(0));
      op->getResult(0).replaceAllUsesWith(made);
      op->erase();
    });
  }
};
} // namespace

std::unique_ptr<Pass> cpu::createExpandHalfConversions() {
  return std::make_unique<ExpandHalfConversions>();
}
