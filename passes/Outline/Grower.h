//===- Grower.h - grows a candidate step by step ---------------*- C++ -*-===//

#ifndef MP_PASSES_OUTLINE_GROWER_H
#define MP_PASSES_OUTLINE_GROWER_H

#include "passes/Outline/Candidate.h"

namespace mlir::mp {

class Grower {
public:
  explicit Grower(Candidate &candidate) : candidate(candidate) {}

  /// Copies transpositions and views in front of the factors, and takes sums
  /// over the long dimension of a factor: gradients of a bias.
  void addFactors(MatmulOp root);
  /// Adds readers and producers until nothing more joins.
  void grow();
  /// Gives back what only makes the border wider.
  void trim();

private:
  bool mayJoin(Operation *op) const;
  bool obeysSums(Operation *op) const;
  bool readsTransposedFromOutside(Operation *op) const;
  bool addReader(Operation *op);
  bool addProducer(Operation *op);
  bool addCopy(Operation *op);
  bool move(Operation *op);
  bool growAround(Operation *op);
  void addSumsOf(Value factor, bool isLhs, int64_t summed);
  bool isLeaf(Operation *op) const;
  bool isWorthless(Operation *op) const;
  void remove(Operation *op);
  void removeUpwards(Operation *op);
  bool dependsOnReduction(Operation *op);
  bool belongsOutside(Operation *op);
  bool becomesCopy(Operation *op) const;
  bool trimOnce();

  Candidate &candidate;
  /// Sums over rows, and what is computed of them.
  llvm::DenseSet<Value> sums;
  llvm::DenseMap<Operation *, bool> dependent;
};

} // namespace mlir::mp

#endif // MP_PASSES_OUTLINE_GROWER_H
