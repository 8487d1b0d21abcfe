//===- Functions.cpp - functions of f32 by polynomials --------------------===//

#include "codegen/Math/Functions.h"
#include "codegen/Math/Numbers.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;

using Emitter = Value (*)(mp::functions::Numbers &, ArrayRef<Value>);

/// Null for what is not in the table.
static Emitter emitterOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Emitter>(op)
#define MATH_FUNCTION(OP, NAME, WORST, LIMIT)                                  \
  .Case<::mlir::math::OP>([](auto) { return &mp::functions::NAME; })
#include "codegen/Math/Functions.def"
      .Default([](Operation *) { return Emitter(); });
}

static void expand(Operation *op, Emitter emitter) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Type type = op->getResult(0).getType();
  Type wide = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  SmallVector<Value> arguments;
  for (Value operand : op->getOperands())
    arguments.push_back(type == wide ? operand
                                     : arith::ExtFOp::create(b, wide, operand));
  mp::functions::Numbers numbers(b, wide);
  Value result = emitter(numbers, arguments);
  if (type != wide)
    result = arith::TruncFOp::create(b, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

void mp::expandFunctions(Operation *root) {
  SmallVector<std::pair<Operation *, Emitter>> found;
  root->walk([&](Operation *op) {
    if (Emitter emitter = emitterOf(op))
      if (!getElementTypeOrSelf(op->getResult(0)).isF64())
        found.emplace_back(op, emitter);
  });
  for (auto [op, emitter] : found)
    expand(op, emitter);
}
