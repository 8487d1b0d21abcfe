//===- Regions.cpp - bodies of operations and mp.region -------------------===//

#include "dialect/IR/Regions.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::mp;

void mlir::mp::inlineBody(Operation *op) {
  OpBuilder builder(op);
  Block &body = op->getRegion(0).front();
  IRMapping mapping;
  mapping.map(body.getArguments(), op->getOperands());
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  for (auto [result, value] :
       llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  op->erase();
}

LogicalResult mlir::mp::verifyBody(Operation *op) {
  Block &body = op->getRegion(0).front();
  // region_c1, scaled_update_c1: the body sees the operands.
  if (body.getArgumentTypes() != op->getOperandTypes())
    return op->emitOpError("body takes other types than the operands'");
  // region_c2, scaled_update_c2: and gives the results.
  auto yield = dyn_cast<YieldOp>(&body.back());
  if (!yield || yield.getOperandTypes() != op->getResultTypes())
    return op->emitOpError("body yields other types than the results'");
  return success();
}

LogicalResult RegionOp::verify() {
  if (failed(verifyBody(*this)))
    return failure();
  // region_c3: values in, values out.
  int64_t products = 0;
  for (Operation &op : getBody().front().without_terminator()) {
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0)
      return op.emitOpError("cannot stand in the body of a region");
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    products += precision && precision.getOpKind() == OpKind::Matmul;
  }
  // region_c4: what the kernel is built around.
  int64_t expected = getKind() == KernelKind::matmul ? 1 : 0;
  if (products != expected)
    return emitOpError("of kind ")
           << stringifyKernelKind(getKind()) << " holds " << products
           << " matrix products, expected " << expected;
  // region_c5: reports call it something.
  if (getName().empty())
    return emitOpError("has an empty name");
  return success();
}

//===----------------------------------------------------------------------===//
// Canonicalization: the border of a region is what crosses memory.
//===----------------------------------------------------------------------===//

namespace {
/// An operand that the body does not read, or that it gets twice, goes.
struct DropOperands : OpRewritePattern<RegionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RegionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getKernel())
      return rewriter.notifyMatchFailure(op, "its kernel has these operands");
    Block &body = op.getBody().front();
    llvm::SmallDenseMap<Value, BlockArgument> first;
    llvm::BitVector dropped(op.getNumOperands());
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), op.getOperands())) {
      auto [known, isNew] = first.try_emplace(operand, argument);
      dropped[argument.getArgNumber()] = argument.use_empty() || !isNew;
      if (!isNew)
        rewriter.replaceAllUsesWith(argument, known->second);
    }
    // The first of several may have been unread until now.
    for (auto [operand, argument] : first)
      if (!argument.use_empty())
        dropped.reset(argument.getArgNumber());
    if (dropped.none())
      return rewriter.notifyMatchFailure(op, "each operand is read, once");
    rewriter.modifyOpInPlace(op, [&] {
      body.eraseArguments(dropped);
      op->eraseOperands(dropped);
    });
    return success();
  }
};

/// A result that nobody reads goes, with what only it needs.
struct DropResults : OpRewritePattern<RegionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RegionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getKernel())
      return rewriter.notifyMatchFailure(op, "its kernel has these results");
    SmallVector<Value> kept, yielded;
    for (auto [result, value] : llvm::zip(op.getResults(), op.getYielded()))
      if (!result.use_empty()) {
        kept.push_back(result);
        yielded.push_back(value);
      }
    if (kept.empty() || kept.size() == op.getNumResults())
      return rewriter.notifyMatchFailure(op, "each result is read, or none");
    auto region = RegionOp::create(
        rewriter, op.getLoc(), TypeRange(ValueRange(kept)), op.getKindAttr(),
        op.getNameAttr(), op.getKernelAttr(), op.getOperands());
    region->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getBody(), region.getBody(),
                                region.getBody().end());
    Operation *yield = region.getBody().front().getTerminator();
    rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });
    for (auto [old, result] : llvm::zip(kept, region.getResults()))
      rewriter.replaceAllUsesWith(old, result);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void RegionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<DropOperands, DropResults>(context);
}
