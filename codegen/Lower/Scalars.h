//===- Scalars.h - builds arithmetic on scalars -----------------*- C++ -*-===//

#ifndef MP_CODEGEN_LOWER_SCALARS_H
#define MP_CODEGEN_LOWER_SCALARS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace mlir::mp::lower {

class Scalars {
public:
  /// `columnLoop` is the loop over columns around the arithmetic.
  Scalars(OpBuilder &builder, Location loc, unsigned columnLoop)
      : builder(builder), loc(loc), columnLoop(columnLoop) {}

  template <typename Op, typename... Args>
  Value create(Args &&...args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  Value number(Type type, double value);
  Value number(double value) { return number(builder.getF32Type(), value); }

  Value add(Value a, Value b) { return create<arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) { return create<arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) { return create<arith::MulFOp>(a, b); }
  Value div(Value a, Value b) { return create<arith::DivFOp>(a, b); }
  Value exp(Value a) { return create<math::ExpOp>(a); }

  /// As the framework converts: to the nearest of a float, dropping the
  /// fraction of an integer, to true unless zero.
  Value convert(Value value, Type type);
  Value toFloat(Value value) { return convert(value, builder.getF32Type()); }

  /// The number of the column, as i64.
  Value column();

  OpBuilder &getBuilder() { return builder; }

private:
  Value fromFloat(Value value, Type type);
  Value fromInteger(Value value, Type type);

  OpBuilder &builder;
  Location loc;
  unsigned columnLoop;
};

} // namespace mlir::mp::lower

#endif // MP_CODEGEN_LOWER_SCALARS_H
