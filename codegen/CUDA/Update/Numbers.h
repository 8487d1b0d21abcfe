//===- Numbers.h - arithmetic of update kernels, on vectors -----*- C++ -*-===//
//
// Short names for the ops that the update is made of. A plain number stands for
// a constant of the other operand's type. Operators give one op each; nothing
// is contracted but `fma`.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_UPDATE_NUMBERS_H
#define MP_CODEGEN_CUDA_UPDATE_NUMBERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::mp::cuda {

class Numbers {
public:
  explicit Numbers(ImplicitLocOpBuilder &b) : b(b) {}

  // Floats.
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) const { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) const { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) const { return arith::DivFOp::create(b, x, y); }
  Value neg(Value x) const { return arith::NegFOp::create(b, x); }
  Value fma(Value x, Value y, Value z) const;
  Value root(Value x) const;
  Value isGreater(Value x, Value y) const { return cmpf(Ordered::OGT, x, y); }
  Value isLess(Value x, Value y) const { return cmpf(Ordered::OLT, x, y); }
  Value isNaN(Value x) const { return cmpf(Ordered::UNO, x, x); }
  Value real(double value, Value like) const;

  // Integers; `value` is taken modulo 2^width.
  Value integer(uint64_t value, Value like) const;
  Value plus(Value x, Value y) const { return arith::AddIOp::create(b, x, y); }
  Value minus(Value x, Value y) const { return arith::SubIOp::create(b, x, y); }
  Value times(Value x, Value y) const { return arith::MulIOp::create(b, x, y); }
  Value both(Value x, Value y) const { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) const { return arith::OrIOp::create(b, x, y); }
  Value differ(Value x, Value y) const {
    return arith::XOrIOp::create(b, x, y);
  }
  Value up(Value x, Value y) const { return arith::ShLIOp::create(b, x, y); }
  Value down(Value x, Value y) const { return arith::ShRUIOp::create(b, x, y); }
  Value plus(Value x, uint64_t y) const { return plus(x, integer(y, x)); }
  Value minus(Value x, uint64_t y) const { return minus(x, integer(y, x)); }
  Value times(Value x, uint64_t y) const { return times(x, integer(y, x)); }
  Value both(Value x, uint64_t y) const { return both(x, integer(y, x)); }
  Value either(Value x, uint64_t y) const { return either(x, integer(y, x)); }
  Value up(Value x, uint64_t y) const { return up(x, integer(y, x)); }
  Value down(Value x, uint64_t y) const { return down(x, integer(y, x)); }
  Value least(Value x, uint64_t y) const {
    return arith::MinUIOp::create(b, x, integer(y, x));
  }
  Value isAbove(Value x, Value y) const { return cmpi(Sign::ugt, x, y); }
  Value isAbove(Value x, uint64_t y) const { return isAbove(x, integer(y, x)); }
  Value isBelow(Value x, Value y) const { return cmpi(Sign::ult, x, y); }
  Value isEqual(Value x, uint64_t y) const {
    return cmpi(Sign::eq, x, integer(y, x));
  }

  Value select(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(b, condition, x, y);
  }
  /// The same bits, or the same number in more or fewer of them.
  Value bitsAs(Type element, Value x) const;
  Value widen(Type element, Value x) const;
  Value narrow(Type element, Value x) const;

private:
  using Ordered = arith::CmpFPredicate;
  using Sign = arith::CmpIPredicate;
  Value cmpf(Ordered kind, Value x, Value y) const {
    return arith::CmpFOp::create(b, kind, x, y);
  }
  Value cmpi(Sign kind, Value x, Value y) const {
    return arith::CmpIOp::create(b, kind, x, y);
  }

  ImplicitLocOpBuilder &b;
};

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_UPDATE_NUMBERS_H
