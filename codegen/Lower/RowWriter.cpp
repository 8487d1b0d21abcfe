//===- RowWriter.cpp - row kernels of the backend contract ----------------===//
//
// A node has a *phase*: the number of row reductions that must be done before
// it. In each phase come the arithmetic on rows, the arithmetic on elements and
// then the reductions. Elements that only one stage reads are computed in that
// stage; conversions are done again wherever they are read.
//
//===----------------------------------------------------------------------===//

#include "codegen/Lower/KernelWriter.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

using Kind = Node::Kind;

namespace {
/// What is known of a node.
struct Facts {
  unsigned phase = 0;
  bool isReduced = false; ///< depends on a reduction
  bool isResult = false;
  bool isStored = false; ///< a stage gives it
  /// The stages that read it: a reduction, or the arithmetic of a phase.
  llvm::SmallDenseSet<std::pair<Node *, unsigned>> readers;
};

class RowWriter {
public:
  RowWriter(KernelWriter &writer, NodeGraph &graph)
      : writer(writer), graph(graph) {}

  bool run(std::string &reason);

private:
  void findPhases();
  void findReaders();
  bool mustStore(const Node &node) const;
  bool checkResults(std::string &reason) const;
  void writePhase(unsigned phase);
  void writeStage(Place place, unsigned phase, Loops loops);

  Facts &factsOf(const Node &node) { return facts[&node]; }

  KernelWriter &writer;
  NodeGraph &graph;
  llvm::DenseMap<const Node *, Facts> facts;
  unsigned lastPhase = 0;
};
} // namespace

void RowWriter::findPhases() {
  for (GraphResult &result : graph.results)
    facts[result.node].isResult = true;
  for (Node &node : graph.nodes) {
    Facts own = facts[&node];
    for (Node *input : node.inputs) {
      own.phase = std::max(own.phase, facts[input].phase);
      own.isReduced |= facts[input].isReduced;
    }
    bool isReduction =
        node.kind == Kind::RowReduction || node.kind == Kind::ColumnReduction;
    own.isReduced |= isReduction;
    // The value of a reduction of rows is there in the next phase.
    own.phase += node.kind == Kind::RowReduction;
    lastPhase = std::max(lastPhase, own.phase);
    facts[&node] = own;
  }
}

/// Arithmetic is stored if it is a result, or if several stages need it and it
/// is more than a conversion.
bool RowWriter::mustStore(const Node &node) const {
  const Facts &own = facts.find(&node)->second;
  if (node.kind != Kind::Compute)
    return node.kind != Kind::Argument;
  if (own.isResult)
    return true;
  switch (node.place) {
  case Place::Scalar:
    return false;
  case Place::Row:
  case Place::Column:
    // Once for each row, not for each element.
    return own.isReduced;
  case Place::Element:
  case Place::Transposed:
    return !node.isConversion && own.readers.size() > 1;
  }
  llvm_unreachable("unknown place");
}

/// From the last node to the first: its readers have been decided.
void RowWriter::findReaders() {
  for (auto it = graph.nodes.rbegin(); it != graph.nodes.rend(); ++it) {
    Node &node = *it;
    Facts own = facts[&node];
    own.isStored = mustStore(node);
    facts[&node].isStored = own.isStored;
    bool isReduction =
        node.kind == Kind::RowReduction || node.kind == Kind::ColumnReduction;
    for (Node *input : node.inputs) {
      auto &readers = facts[input].readers;
      if (isReduction)
        readers.insert({&node, 0});
      else if (own.isStored)
        readers.insert({nullptr, own.phase});
      else
        readers.insert(own.readers.begin(), own.readers.end());
    }
  }
}

bool RowWriter::checkResults(std::string &reason) const {
  for (GraphResult &result : graph.results) {
    const Facts &own = facts.find(result.node)->second;
    if (result.node->place == Place::Element ||
        (own.isReduced && result.node->place != Place::Scalar))
      continue;
    reason = "one of its results is no element and depends on no reduction";
    return false;
  }
  return true;
}

void RowWriter::writeStage(Place place, unsigned phase, Loops loops) {
  SmallVector<Node *> nodes;
  for (Node &node : graph.nodes) {
    const Facts &own = factsOf(node);
    if (node.kind == Kind::Compute && node.place == place && own.isStored &&
        (place == Place::Column || own.phase == phase))
      nodes.push_back(&node);
  }
  if (!nodes.empty())
    writer.write(nodes, loops);
}

void RowWriter::writePhase(unsigned phase) {
  writeStage(Place::Row, phase, {Loops::Rows});
  writeStage(Place::Element, phase, {Loops::Matrix});
  for (Node &node : graph.nodes) {
    bool isOfRows = node.kind == Kind::RowReduction;
    if ((isOfRows && factsOf(node).phase == phase + 1) ||
        (node.kind == Kind::ColumnReduction && factsOf(node).phase == phase))
      writer.writeReduction(&node);
  }
}

bool RowWriter::run(std::string &reason) {
  findPhases();
  findReaders();
  if (!checkResults(reason))
    return false;
  for (unsigned phase = 0; phase <= lastPhase; ++phase)
    writePhase(phase);
  writeStage(Place::Column, 0, {Loops::Columns});
  SmallVector<Value> results;
  for (GraphResult &result : graph.results)
    results.push_back(writer.valueOf(result.node));
  writer.finish(results);
  return true;
}

bool lower::writeRows(KernelWriter &writer, NodeGraph &graph,
                      std::string &reason) {
  return RowWriter(writer, graph).run(reason);
}
