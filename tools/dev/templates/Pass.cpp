//===- @File@.cpp - @arg@ @rule@===//

#include "dialect/IR/MPOps.h"
#include "passes/Passes.h"

namespace mlir::mp {
#define GEN_PASS_DEF_@DEF@
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
struct @File@ : mp::impl::@File@Base<@File@> {
  using @File@Base::@File@Base;

  void runOnOperation() override {
    getOperation().walk([](CastOp cast) {
      // Guards first, one reason each; then the rewrite.
      (void)cast;
    });
  }
};
} // namespace
