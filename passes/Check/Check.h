//===- Check.h - prove that a rewrite kept its contract --------*- C++ -*-===//
//
// Translation validation: compares a module before and after passes without
// asking the passes. Both are brought to a normal form in which each legal move
// of a conversion is invisible (Terms.h), and then every output, every
// operation with effects and the signature must be equal.
//
// What only the contract `precise` allows is allowed where the record
// (`mp.rewrites` of the module after) names it, and only after its conditions
// have been verified on the module before (Obligations.h). Without such a
// record the two modules are bit-identical in meaning.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_CHECK_H
#define MP_PASSES_CHECK_CHECK_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::mp {

/// Succeeds if `after` is a legal rewrite of `before`, both verified modules of
/// one context. Emits one error for each violation, at a location of `before`
/// with a note at one of `after`.
LogicalResult checkRewrites(ModuleOp before, ModuleOp after);

} // namespace mlir::mp

#endif // MP_PASSES_CHECK_CHECK_H
