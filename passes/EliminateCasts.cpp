//===- EliminateCasts.cpp - mp-eliminate-casts ----------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Casts/CastIndex.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Casts/ValueNumbers.h"
#include "passes/Passes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_ELIMINATECASTS
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct EliminateCasts : mp::impl::EliminateCastsBase<EliminateCasts> {
  using EliminateCastsBase::EliminateCastsBase;

  void runOnOperation() override {
    RewriteLog log(getOperation(), getArgument());
    if (getOperation().isExternal())
      return;
    // Sharing two conversions can leave one reader where there were two, which
    // lets a pattern match; patterns can make two conversions equal.
    shareCasts(getOperation(), log);
    int64_t before;
    do {
      // A record of what could not be done is about the result, not about a
      // state on the way: only that of the last round, which changes nothing.
      log.forgetMisses();
      before = log.numApplied();
      if (failed(applyPatterns(log)))
        return signalPassFailure();
      shareCasts(getOperation(), log);
    } while (log.numApplied() != before);
    log.commit();
    if (log.numApplied() == 0)
      markAllAnalysesPreserved();
  }

private:
  LogicalResult applyPatterns(RewriteLog &log) {
    RewritePatternSet patterns(&getContext());
    populateFoldCastPatterns(patterns, log);
    CastIndex index(getOperation());
    ValueNumbers numbers(getOperation(), &index);
    populateHoistCastPatterns(patterns, log, index);
    populateSinkCastPatterns(patterns, log);
    if (numerics != Numerics::Strict) {
      populateDropRoundingPatterns(patterns, log, numbers);
      populateMatmulOperandPatterns(patterns, log);
    }
    // Folding would change casts behind the log's back.
    GreedyRewriteConfig config;
    config.enableFolding(false)
        .enableConstantCSE(false)
        .setUseTopDownTraversal()
        .setListener(&numbers)
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};
} // namespace
