//===- CastPatterns.h - rewrites of conversions ----------------*- C++ -*-===//
//
// One populate function for each file of this folder. Every pattern asks the
// log before it changes anything and gives a reason when it does not match.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CASTS_CASTPATTERNS_H
#define MP_PASSES_CASTS_CASTPATTERNS_H

#include "dialect/IR/MPOps.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/RewriteLog.h"

namespace mlir::mp {

class CastIndex;
class ValueNumbers;

/// A pattern that records what it does.
template <typename Op>
struct LoggedPattern : OpRewritePattern<Op> {
  LoggedPattern(MLIRContext *context, RewriteLog &log)
      : OpRewritePattern<Op>(context), log(log) {}

  LogicalResult limitReached(Op op, PatternRewriter &rewriter) const {
    return rewriter.notifyMatchFailure(op, "rewrite limit reached");
  }

  RewriteLog &log;
};

// Contract strict.
void populateFoldCastPatterns(RewritePatternSet &patterns, RewriteLog &log);
void populateHoistCastPatterns(RewritePatternSet &patterns, RewriteLog &log,
                               const CastIndex &index);
void populateSinkCastPatterns(RewritePatternSet &patterns, RewriteLog &log);

/// Merges equal conversions of one value within a phase; true if it did.
bool shareCasts(func::FuncOp func, RewriteLog &log);

// Contract precise.
void populateDropRoundingPatterns(RewritePatternSet &patterns, RewriteLog &log,
                                  ValueNumbers &numbers);
void populateMatmulOperandPatterns(RewritePatternSet &patterns,
                                   RewriteLog &log);

//===----------------------------------------------------------------------===//
// Shared by the patterns
//===----------------------------------------------------------------------===//

/// True for a conversion between float types that can change a value.
bool isNarrowing(CastOp cast);

/// True for a conversion between float types that changes no value.
bool isWidening(CastOp cast);

/// The format that a conversion between floats, also one that copies, or a
/// rounding leaves values in; null for other operations.
Type roundedFormat(Operation *op);

/// True if `mp.round` has rounded the operand to a format that `narrowing`
/// holds, so that it changes no value.
bool isRoundedAlready(CastOp narrowing);

/// True if both belong to forward or both to backward, and to one checkpointed
/// region. Across that border a rewrite could keep more bytes for backward, or
/// round a value in one run of a region and not in the other.
bool inSamePhase(Operation *a, Operation *b);

/// Puts `to` into the phase and the checkpointed region of `from`.
void copyPhase(Operation *from, Operation *to);

/// True if `value`, or a view of it, is a graph output; `except` does not
/// count.
bool reachesOutput(Value value, Operation *except = nullptr);

/// True if replacing `from` by `to` would make a graph output share memory with
/// an input or with another output, which it did not do before.
bool wouldAlias(Value from, Value to);

/// True if each constant among the operator's arguments that may become an
/// element, a filler of pad or masked_fill, is a value of `elementType`.
bool hasExactFillers(Operation *op, Type elementType);

/// True if a pin wants the operation in exactly its traced types.
bool keepsTypes(Operation *op);

/// True if an argument names a dtype, so that operands do not decide the
/// result.
bool namesDtype(Operation *op);

/// The type that a reader would get of `op` computed in `elementType`; `op` has
/// one result, a ranked tensor.
RankedTensorType resultIn(Operation *op, Type elementType);

/// "f32 to bf16".
std::string describe(CastOp cast);

} // namespace mlir::mp

#endif // MP_PASSES_CASTS_CASTPATTERNS_H
