//===- MinCut.h - minimum s-t cut ------------------------------*- C++ -*-===//
//
// A directed graph with integer capacities, and its minimum cut by the method
// of Boykov and Kolmogorov as Boost.Graph implements it. Boost stays behind
// this header.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_MINCUT_H
#define MP_PASSES_PLACEMENT_MINCUT_H

#include <cstdint>
#include <vector>

namespace mlir::mp {

class MinCut {
public:
  using Node = int32_t;
  /// Nodes that every graph has.
  static constexpr Node kSource = 0, kSink = 1;
  /// A capacity that no finite cut pays; the finite ones must sum to less.
  static constexpr int64_t kInfinite = int64_t(1) << 50;

  Node addNode() { return numNodes++; }

  /// The cut pays `capacity` if `from` is on the source's side and `to` is not.
  /// Nothing happens for a capacity of zero or an edge to itself.
  void addEdge(Node from, Node to, int64_t capacity);

  /// The value of the minimum cut; kInfinite or more if none is finite.
  int64_t solve();

  /// Of the cut found last. Of several minimum cuts it is the one with the
  /// most nodes on the source's side.
  bool isOnSourceSide(Node node) const { return onSourceSide[node]; }

private:
  struct Edge {
    Node from, to;
    int64_t capacity;
  };

  std::vector<bool> tiedTo(Node start, Node Edge::*from, Node Edge::*to) const;
  static std::pair<int64_t, std::vector<bool>>
  solveRest(Node count, const std::vector<Edge> &rest);

  Node numNodes = 2;
  std::vector<Edge> edges;
  std::vector<bool> onSourceSide;
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_MINCUT_H
