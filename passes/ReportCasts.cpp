//===- ReportCasts.cpp - mp-report-casts ----------------------------------===//

#include "passes/CastReasons.h"
#include "passes/Passes.h"
#include "passes/RewriteLog.h"

namespace mlir::mp {
#define GEN_PASS_DEF_REPORTCASTS
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct ReportCasts : mp::impl::ReportCastsBase<ReportCasts> {
  using ReportCastsBase::ReportCastsBase;

  void runOnOperation() override {
    RewriteLog log(getOperation(), getArgument());
    getOperation().walk([&](CastOp cast) {
      if (roleOf(cast) == CastRole::Activation)
        log.miss(Rule::KeepCast, cast, reasonToKeep(cast));
    });
    log.commit();
    markAllAnalysesPreserved();
  }
};
} // namespace
