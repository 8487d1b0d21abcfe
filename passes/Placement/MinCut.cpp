//===- MinCut.cpp - minimum s-t cut ---------------------------------------===//

#include "passes/Placement/MinCut.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/throw_exception.hpp>

#include <cassert>
#include <cstdlib>
#include <queue>

using namespace mlir::mp;

// Boost asks for this where exceptions are off; nothing that is used here
// throws.
void boost::throw_exception(const std::exception &) { std::abort(); }
void boost::throw_exception(const std::exception &,
                            const boost::source_location &) {
  std::abort();
}

namespace {
using Traits =
    boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct Arc {
  int64_t capacity = 0;
  int64_t residual = 0;
  Traits::edge_descriptor reverse;
};
struct Vertex {
  Traits::edge_descriptor predecessor;
  boost::default_color_type color = boost::white_color;
  int64_t distance = 0;
};
using Flow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                   Vertex, Arc>;
} // namespace

void MinCut::addEdge(Node from, Node to, int64_t capacity) {
  assert(capacity >= 0 && "a negative cost has no cut");
  if (capacity > 0 && from != to)
    edges.push_back({from, to, capacity});
}

/// Marks what cannot reach the sink along arcs with capacity left: the largest
/// source side of all minimum cuts, whatever way the flow was found.
static std::vector<bool> largestSourceSide(const Flow &flow) {
  std::vector<bool> onSourceSide(boost::num_vertices(flow), true);
  std::queue<MinCut::Node> pending({MinCut::kSink});
  onSourceSide[MinCut::kSink] = false;
  while (!pending.empty()) {
    auto [arc, end] = boost::out_edges(pending.front(), flow);
    pending.pop();
    for (; arc != end; ++arc) {
      MinCut::Node from = boost::target(*arc, flow);
      if (!onSourceSide[from] || flow[flow[*arc].reverse].residual == 0)
        continue;
      onSourceSide[from] = false;
      pending.push(from);
    }
  }
  return onSourceSide;
}

int64_t MinCut::solve() {
  Flow flow(numNodes);
  for (const Edge &edge : edges) {
    auto forward = boost::add_edge(edge.from, edge.to, flow).first;
    auto backward = boost::add_edge(edge.to, edge.from, flow).first;
    flow[forward].capacity = edge.capacity;
    flow[forward].reverse = backward;
    flow[backward].reverse = forward;
  }
  int64_t value = boost::boykov_kolmogorov_max_flow(
      flow, boost::get(&Arc::capacity, flow), boost::get(&Arc::residual, flow),
      boost::get(&Arc::reverse, flow), boost::get(&Vertex::predecessor, flow),
      boost::get(&Vertex::color, flow), boost::get(&Vertex::distance, flow),
      boost::get(boost::vertex_index, flow), kSource, kSink);
  onSourceSide = largestSourceSide(flow);
  return value;
}
