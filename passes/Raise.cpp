//===- Raise.cpp - mp-raise -----------------------------------------------===//

#include "dialect/IR/MPOps.h"
#include "dialect/IR/Pins.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::mp {
#define GEN_PASS_DEF_RAISE
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

template <typename Op>
static Operation *raiseWhole(AtenOp op, OpBuilder &builder) {
  return Op::create(builder, op.getLoc(), op.getResultTypes(), op.getOperands(),
                    op.getArgsAttr());
}

/// True if the product and its two factors have the rank of the callee.
static bool areMatrices(AtenOp op) {
  int64_t rank = op.getCallee().contains("bmm") ? 3 : 2;
  auto hasRank = [&](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == rank;
  };
  return hasRank(op->getResult(0)) &&
         llvm::all_of(op->getOperands().take_back(2), hasRank);
}

/// mm and bmm are (lhs, rhs), addmm and baddbmm are (bias, lhs, rhs).
static Operation *raiseMatmul(AtenOp op, OpBuilder &builder) {
  unsigned operands =
      llvm::StringSwitch<unsigned>(op.getCallee())
          .Cases({"aten.mm.default", "aten.bmm.default"}, 2)
          .Cases({"aten.addmm.default", "aten.baddbmm.default"}, 3)
          .Default(0);
  // beta and alpha scale the bias and the product: leave those forms alone.
  if (operands == 0 || op->getNumOperands() != operands || op.getArgs())
    return nullptr;
  auto isFloat = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<FloatType>(tensor.getElementType());
  };
  if (!llvm::all_of(op->getOperandTypes(), isFloat))
    return nullptr;
  // A program traced under autocast, before its casts are in the graph, has
  // matrix products whose types do not fit: leave them as they are.
  auto elementType = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  };
  Value lhs = op->getOperand(operands - 2), rhs = op->getOperand(operands - 1);
  if (op->getNumResults() != 1 || !isFloat(op->getResult(0).getType()) ||
      elementType(lhs) != elementType(rhs) ||
      elementType(lhs) != elementType(op->getResult(0)) || !areMatrices(op))
    return nullptr;
  Value bias = operands == 3 ? op->getOperand(0) : Value();
  return MatmulOp::create(builder, op.getLoc(), op->getResult(0).getType(), lhs,
                          rhs, bias,
                          /*args=*/DictionaryAttr());
}

static Operation *raised(AtenOp op, OpBuilder &builder) {
#define MP_RAISED_OP(CLASS, CALLEE, RESULTS)                                   \
  if (op.getCallee() == (CALLEE) && op->getNumResults() == (RESULTS))          \
    return raiseWhole<CLASS>(op, builder);
#include "dialect/IR/RaisedOps.def"
  return raiseMatmul(op, builder);
}

namespace {
struct Raise : mp::impl::RaiseBase<Raise> {
  void runOnOperation() override {
    for (AtenOp op :
         llvm::make_early_inc_range(getOperation().getOps<AtenOp>()))
      raiseOperator(op);
  }

private:
  static void raiseOperator(AtenOp op) {
    if (op.getEffects())
      return;
    OpBuilder builder(op);
    Operation *raisedOp = raised(op, builder);
    if (!raisedOp)
      return;
    raisedOp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    // The framework's bias comes first, ours last.
    if (auto matmul = dyn_cast<MatmulOp>(raisedOp); matmul && matmul.getBias())
      renumberPinnedOperands(raisedOp, {2, 0, 1});
    op->replaceAllUsesWith(raisedOp);
    op->erase();
  }
};
} // namespace
