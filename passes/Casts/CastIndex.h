//===- CastIndex.h - the conversions of each value -------------*- C++ -*-===//
//
// A value can have many readers and few conversions. Patterns that look for an
// equal conversion ask this index instead of all readers, so that a pass stays
// linear. It follows the rewriter as its listener.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CASTS_CASTINDEX_H
#define MP_PASSES_CASTS_CASTINDEX_H

#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::mp {

/// What makes two conversions equal: of one value, to one type, in one phase.
struct CastKey {
  Value input;
  Type to;
  bool backward;
  Attribute recompute; ///< a checkpointed region repeats its own conversions

  bool operator==(const CastKey &other) const {
    return input == other.input && to == other.to &&
           backward == other.backward && recompute == other.recompute;
  }
};

/// The key of a conversion of `input` to `to` next to `like`.
CastKey castKeyOf(Value input, Type to, Operation *like);

struct CastKeyInfo {
  static CastKey getEmptyKey() {
    return {DenseMapInfo<Value>::getEmptyKey(), {}, false, {}};
  }
  static CastKey getTombstoneKey() {
    return {DenseMapInfo<Value>::getTombstoneKey(), {}, false, {}};
  }
  static unsigned getHashValue(const CastKey &key) {
    return llvm::hash_combine(key.input, key.to, key.backward, key.recompute);
  }
  static bool isEqual(const CastKey &a, const CastKey &b) { return a == b; }
};

class CastIndex : public RewriterBase::Listener {
public:
  explicit CastIndex(func::FuncOp func);

  /// The first conversion of `input` to `to` in the phase of `like` that is not
  /// `like` itself and no operator's own promotion; null if there is none.
  CastOp find(Value input, Type to, Operation *like) const;

  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override;
  void notifyOperationModified(Operation *op) override;
  void notifyOperationErased(Operation *op) override;

private:
  void add(CastOp cast);
  void remove(Operation *op);

  llvm::DenseMap<CastKey, SmallVector<Operation *, 1>, CastKeyInfo> casts;
  llvm::DenseMap<Operation *, CastKey> keys;
};

} // namespace mlir::mp

#endif // MP_PASSES_CASTS_CASTINDEX_H
