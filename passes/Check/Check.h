//===- Check.h - prove that a rewrite kept its contract --------*- C++ -*-===//
//
// Translation validation: compares a module before and after passes without
// asking the passes. Both are brought to a normal form in which each legal move
// of a conversion is invisible (Terms.h), and then every output, every
// operation with effects and the signature must be equal.
//
// What only the contracts `precise` and `relaxed` allow is allowed where the
// record (`mp.rewrites` of the module after) names it, and only after its
// conditions have been verified on the module before (Obligations.h,
// AddedRoundings.h). Without such a record the two modules are bit-identical in
// meaning.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_CHECK_H
#define MP_PASSES_CHECK_CHECK_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::mp {

/// The roundings that a function has more than before, all of them recorded.
struct AddedRoundings {
  std::string function;
  int64_t reads = 0; ///< operands that are read rounded
  int64_t calls = 0; ///< library calls that are computed from halves
  /// Estimated noise of the results before and what the reads add to it, in
  /// variance of one rounding (Noise.h).
  double noiseBefore = 0, noiseAdded = 0;
  double epsilon = 0; ///< by which share the estimated error may grow

  /// By which share the estimated error grows.
  double growth() const;
};

/// Succeeds if `after` is a legal rewrite of `before`, both verified modules of
/// one context. Emits one error for each violation, at a location of `before`
/// with a note at one of `after`. `added` gets an entry for each function whose
/// record adds roundings.
LogicalResult checkRewrites(ModuleOp before, ModuleOp after,
                            SmallVectorImpl<AddedRoundings> *added = nullptr);

} // namespace mlir::mp

#endif // MP_PASSES_CHECK_CHECK_H
