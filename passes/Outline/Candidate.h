//===- Candidate.h - operations that one kernel could compute --*- C++ -*-===//
//
// A candidate starts at a matrix product or at a reduction of rows and grows
// over what can join it: readers of its values, and what is computed for it
// alone. Nothing is computed twice; a value that is read outside as well is a
// further result. Growth stops
//
//   - at what no kernel of ours computes (RegionOps.def),
//   - where places do not fit (Places.h),
//   - between forward and backward, and at checkpointed regions,
//   - at operations with effects,
//   - at what the user pinned to its traced type,
//   - where another kernel would have to run in the middle.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_OUTLINE_CANDIDATE_H
#define MP_PASSES_OUTLINE_CANDIDATE_H

#include "passes/Outline/Places.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::mp {

struct Candidate {
  KernelKind kind;
  Operation *root;
  Places places;
  /// What moves into the region. Values that are read outside are results.
  llvm::SetVector<Operation *> ops;
  /// Transpositions and views in front of the factors of a product, and
  /// constants. They cost nothing: the region gets copies.
  llvm::SetVector<Operation *> copied;
  /// Why the candidate cannot be a region; empty if it can.
  std::string whyNot;

  Candidate(KernelKind kind, Operation *root, const Space &space)
      : kind(kind), root(root), places(space) {}

  bool holds(Operation *op) const { return ops.contains(op); }
  /// Operations that become the body, in the order of the block.
  SmallVector<Operation *> body() const;
  /// What the region reads and what it gives.
  SmallVector<Value> operands() const;
  SmallVector<Value> results() const;
};

/// Grows a candidate from a root; none if `root` can be none. `isAlone` keeps a
/// product by itself, with the sums of its factors.
std::optional<Candidate> growMatmul(MatmulOp root, bool isAlone = false);
std::optional<Candidate> growRows(Operation *root);

/// Whether all of the candidate can run at once: no operation outside reads a
/// value of it and is read by it, directly or through others.
bool canRunAtOnce(const llvm::SetVector<Operation *> &ops);

} // namespace mlir::mp

#endif // MP_PASSES_OUTLINE_CANDIDATE_H
