//===- MinCut.cpp - minimum s-t cut ---------------------------------------===//

#include "passes/Placement/MinCut.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/throw_exception.hpp>

#include <cassert>
#include <cstdlib>
#include <numeric>
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

/// Nodes that infinite edges tie to `start`, along edges or against them.
std::vector<bool> MinCut::tiedTo(Node start, Node Edge::*from,
                                 Node Edge::*to) const {
  // Edges by the node that they leave, as in a compressed sparse row.
  std::vector<int> begin(numNodes + 1);
  for (const Edge &edge : edges)
    begin[edge.*from + 1] += edge.capacity >= kInfinite;
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Node> ends(begin.back());
  std::vector<int> next(begin.begin(), begin.end() - 1);
  for (const Edge &edge : edges)
    if (edge.capacity >= kInfinite)
      ends[next[edge.*from]++] = edge.*to;
  std::vector<bool> tied(numNodes);
  std::vector<Node> pending({start});
  tied[start] = true;
  while (!pending.empty()) {
    Node node = pending.back();
    pending.pop_back();
    for (int i = begin[node]; i < begin[node + 1]; ++i)
      if (!tied[ends[i]]) {
        tied[ends[i]] = true;
        pending.push_back(ends[i]);
      }
  }
  return tied;
}

int64_t MinCut::solve() {
  // Mostly much is fixed, and only the rest needs a flow.
  std::vector<bool> high = tiedTo(kSource, &Edge::from, &Edge::to);
  std::vector<bool> low = tiedTo(kSink, &Edge::to, &Edge::from);
  std::vector<Node> merged(numNodes);
  Node count = 2;
  for (Node node = 0; node < numNodes; ++node) {
    if (high[node] && low[node]) {
      onSourceSide = high;
      return kInfinite;
    }
    merged[node] = high[node] ? kSource : low[node] ? kSink : count++;
  }
  std::vector<Edge> rest;
  int64_t paid = 0;
  for (const Edge &edge : edges) {
    Edge moved{merged[edge.from], merged[edge.to], edge.capacity};
    if (moved.from == kSource && moved.to == kSink)
      paid += edge.capacity;
    else if (moved.from != moved.to && moved.from != kSink &&
             moved.to != kSource)
      rest.push_back(moved);
  }
  auto [value, side] = solveRest(count, rest);
  onSourceSide.resize(numNodes);
  for (Node node = 0; node < numNodes; ++node)
    onSourceSide[node] = side[merged[node]];
  return value + paid;
}

std::pair<int64_t, std::vector<bool>>
MinCut::solveRest(Node count, const std::vector<Edge> &rest) {
  Flow flow(count);
  for (const Edge &edge : rest) {
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
  return {value, largestSourceSide(flow)};
}
