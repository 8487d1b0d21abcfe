//===- KernelMerger.h - which stored operations share a kernel -*- C++ -*-===//
//
// Greedy fusion of stored operations, most shared bytes first, as Inductor's
// scheduler does it: two kernels merge if their loops agree and no other kernel
// has to run between them.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_KERNELMERGER_H
#define MP_PASSES_PLACEMENT_KERNELMERGER_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::mp {

/// Elements that the loops of a stored operation run over.
int64_t iterationSize(Operation *op);

class KernelMerger {
public:
  using Members = SmallVector<Operation *, 2>;

  explicit KernelMerger(bool mixesReductions)
      : mixesReductions(mixesReductions) {}

  /// Adds a kernel for `op`, in program order; `inside` are the operations that
  /// it computes.
  void add(Operation *op, ArrayRef<Operation *> inside);

  /// The operations of each kernel, in program order.
  std::vector<Members> run();

private:
  /// The loops of a reduction.
  struct Loops {
    enum Axis : uint8_t { Inner, Outer, Middle, All };
    int64_t elements, results;
    Axis axis;
    bool operator==(const Loops &other) const {
      return elements == other.elements && results == other.results &&
             axis == other.axis;
    }
  };
  struct Node {
    Members members;
    SmallVector<Loops, 1> reductions;
    llvm::SmallDenseSet<Value, 4> reads, writes;
    llvm::SmallDenseSet<int, 4> before, after; ///< neighbours, by number
    int64_t elements = 0;
    int position = 0; ///< in a topological order of the kernels
    bool isExternal = false, isBackward = false, isAlive = true;
  };
  struct Candidate {
    int64_t bytes;
    int first, second;
  };

  static Loops loopsOf(Operation *op);
  bool haveEqualLoops(const Node &a, const Node &b) const;
  bool canReduceTogether(const Node &a, const Node &b) const;
  bool canFollow(const Node &reduction, const Node &pointwise) const;
  bool canMerge(int a, int b) const;
  bool isBetween(int first, int last) const;
  std::vector<Candidate> candidates() const;
  int find(int node);
  bool mergeOnce();
  void merge(int first, int second);
  void reorder(int first, int second);

  bool mixesReductions;
  std::vector<Node> nodes;
  std::vector<int> parent;
  std::vector<int> order; ///< node at each position
  llvm::DenseMap<Value, int> writer;
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_KERNELMERGER_H
