//===- MPFolds.cpp - folds and canonicalization that change no bit --------===//

#include "dialect/IR/MPOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::mp;

/// cast(x : T to T) -> x
/// cast(cast(x : A to B) : B to A) -> x, if A to B is exact
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<CastOp>();
  if (inner && inner.isExact() && inner.getInput().getType() == getType())
    return inner.getInput();
  return {};
}

/// materialize(materialize(x)) -> materialize(x)
OpFoldResult MaterializeOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<MaterializeOp>();
  return inner ? inner.getOutput() : Value();
}

/// round(round(x to F) to F) -> round(x to F)
OpFoldResult RoundOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<RoundOp>();
  if (inner && inner.getFormat() == getFormat())
    return inner.getOutput();
  return {};
}

namespace {
/// cast(cast(x : A to B) : B to C) -> cast(x : A to C), if A to B is exact. The
/// outer rounding is the only one in either form, so it keeps its origin.
struct MergeAfterExactCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is not a cast");
    if (!inner.isExact())
      return rewriter.notifyMatchFailure(op, "inner cast rounds");
    // -1 from i8 to ui8 is 255, through f32 it is whatever the machine does.
    if (!isa<FloatType>(inner.getFrom()) && !isa<FloatType>(op.getTo()))
      return rewriter.notifyMatchFailure(op, "from integer to integer");
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(inner.getInput()); });
    return success();
  }
};
} // namespace

void CastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<MergeAfterExactCast>(context);
}
