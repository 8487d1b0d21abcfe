//===- Edits.cpp - from a module back to a difference ---------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp;

bool mlir::mp::isConversionTarget(StringRef target) {
  return llvm::StringSwitch<bool>(target)
      .Cases({"prims.convert_element_type.default", "aten._to_copy.default",
              "aten.to.dtype", "aten.type_as.default", "mp.cast"},
             true)
      .Default(false);
}

bool mlir::mp::standsFor(Operation *op, StringRef target) {
  if (isa<CastOp>(op))
    return isConversionTarget(target);
  if (StringRef callee = frameworkCallee(op); !callee.empty())
    return callee == target;
  return op->getName().getStringRef() == target;
}

namespace {
/// Walks the function once, in step with the graph's nodes.
class EditReader {
public:
  EditReader(const Graph &graph, func::FuncOp func)
      : graph(graph), func(func) {}

  Edits read();

private:
  int32_t firstOperand(int32_t node) const {
    return node > 0 ? graph.operandEnd[node - 1] : 0;
  }
  int32_t firstResult(int32_t node) const {
    return node > 0 ? graph.resultEnd[node - 1] : 0;
  }
  bool isKept(Operation *op, int32_t node) const;
  void keep(Operation *op, int32_t node);
  void add(Operation *op);

  const Graph &graph;
  func::FuncOp func;
  Edits edits;
  DenseMap<Value, int32_t> number;
  std::vector<bool> kept;
  std::vector<size_t> pending; ///< added ops that wait for the next kept node
  DenseMap<Type, int32_t> typeIndex;
  int32_t lastKept = -1;
  int32_t nextNew = 0;
};
} // namespace

/// The same node still: right operator, arity and order. An op that moved
/// before an earlier node counts as added.
bool EditReader::isKept(Operation *op, int32_t node) const {
  return node > lastKept && node < graph.numNodes() &&
         standsFor(op, graph.targets[graph.target[node]]) &&
         int32_t(op->getNumOperands()) ==
             graph.operandEnd[node] - firstOperand(node) &&
         int32_t(op->getNumResults()) ==
             graph.resultEnd[node] - firstResult(node);
}

void EditReader::keep(Operation *op, int32_t node) {
  lastKept = node;
  kept[node] = true;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    int32_t value = number.lookup(operand);
    if (value != graph.operands[firstOperand(node) + i])
      edits.rewired.push_back({node, int32_t(i), value});
  }
  bool retyped = false;
  for (OpResult result : op->getResults()) {
    int32_t index = firstResult(node) + result.getResultNumber();
    number[result] = graph.numInputs() + index;
    auto [it, isNew] =
        typeIndex.try_emplace(result.getType(), graph.resultTypes[index]);
    // Each distinct type is printed at most once: the table decides.
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream(text) << result.getType();
      auto found = llvm::find(graph.types, text);
      it->second =
          found == graph.types.end() ? -1 : found - graph.types.begin();
    }
    retyped |= it->second != graph.resultTypes[index];
  }
  if (retyped)
    edits.retyped.push_back(node);
  for (size_t i : pending)
    edits.added[i].before = node;
  pending.clear();
}

void EditReader::add(Operation *op) {
  Edits::Added added;
  added.before = graph.numNodes();
  added.like = stemOf(op->getLoc());
  added.op = op;
  for (Value operand : op->getOperands())
    added.operands.push_back(number.lookup(operand));
  added.firstResult = nextNew;
  for (Value result : op->getResults())
    number[result] = nextNew++;
  pending.push_back(edits.added.size());
  edits.added.push_back(std::move(added));
}

Edits EditReader::read() {
  number.reserve(graph.numInputs() + graph.resultTypes.size());
  for (BlockArgument arg : func.getArguments())
    number[arg] = arg.getArgNumber();
  nextNew = graph.numInputs() + graph.resultTypes.size();
  kept.resize(graph.numNodes());
  for (Operation &op : func.getBody().front().without_terminator()) {
    int32_t node = nodeOf(op.getLoc());
    if (isKept(&op, node))
      keep(&op, node);
    else
      add(&op);
  }
  for (int32_t i = 0; i != graph.numNodes(); ++i)
    if (!kept[i])
      edits.erased.push_back(i);
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    edits.outputs.push_back(number.lookup(value));
  return std::move(edits);
}

FailureOr<Edits> mlir::mp::readEdits(ModuleOp module, const Graph &graph) {
  auto func = module.lookupSymbol<func::FuncOp>(graph.name);
  if (!func || func.isExternal())
    return module.emitError("has no body for @") << graph.name;
  return EditReader(graph, func).read();
}
