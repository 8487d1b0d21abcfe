//===- KernelMerger.cpp - which stored operations share a kernel ----------===//

#include "passes/Placement/KernelMerger.h"
#include "passes/Placement/Fusion.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::mp;

// The scheduler gives up on kernels that are further apart than this, and on
// pairs of a buffer with more readers than that: both keep it near linear.
static constexpr int kMaxDistance = 512;
static constexpr size_t kMaxSharers = 40;
static constexpr int kMaxRounds = 6;

int64_t mlir::mp::iterationSize(Operation *op) {
  int64_t elements = 0;
  for (Type type : op->getResultTypes())
    elements = std::max(elements, estimatedElements(type));
  if (kernelRoleOf(op) == KernelRole::Reduction && op->getNumOperands() > 0)
    elements =
        std::max(elements, estimatedElements(op->getOperand(0).getType()));
  return elements;
}

/// The dimensions that `op` reduces; empty for all.
static SmallVector<int64_t> reducedDimensions(Operation *op) {
  SmallVector<int64_t> dims;
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  Attribute dim = args ? args.get("dim") : Attribute();
  if (auto one = dyn_cast_or_null<IntegerAttr>(dim))
    dims.push_back(one.getInt());
  if (auto list = dyn_cast_or_null<ArrayAttr>(dim))
    for (Attribute item : list)
      if (auto number = dyn_cast<IntegerAttr>(item))
        dims.push_back(number.getInt());
  return dims;
}

KernelMerger::Loops KernelMerger::loopsOf(Operation *op) {
  Loops loops{iterationSize(op), estimatedElements(op->getResult(0).getType()),
              Loops::Inner};
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  SmallVector<int64_t> dims = reducedDimensions(op);
  if (!type || estimatedElements(op->getResult(0).getType()) == loops.elements)
    return loops; // a norm or softmax: by rows
  int64_t firstReduced = type.getRank(), lastReduced = -1;
  int64_t firstKept = type.getRank(), lastKept = -1;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (type.getDimSize(i) == 1)
      continue;
    bool isReduced = dims.empty() || llvm::is_contained(dims, i) ||
                     llvm::is_contained(dims, i - type.getRank());
    int64_t &first = isReduced ? firstReduced : firstKept;
    int64_t &last = isReduced ? lastReduced : lastKept;
    first = std::min(first, i);
    last = i;
  }
  if (lastKept < 0)
    loops.axis = Loops::All;
  else if (lastKept < firstReduced)
    loops.axis = Loops::Inner;
  else
    loops.axis = lastReduced < firstKept ? Loops::Outer : Loops::Middle;
  return loops;
}

void KernelMerger::add(Operation *op, ArrayRef<Operation *> inside) {
  int number = nodes.size();
  Node node;
  node.members = {op};
  node.elements = iterationSize(op);
  node.position = number;
  node.isExternal = kernelRoleOf(op) == KernelRole::External;
  node.isBackward = isBackward(op);
  if (kernelRoleOf(op) == KernelRole::Reduction && op->getNumOperands() > 0)
    node.reductions.push_back(loopsOf(op));
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType())) {
      node.writes.insert(result);
      writer[result] = number;
    }
  for (Operation *part : inside)
    for (Value operand : part->getOperands()) {
      Value buffer = viewedBuffer(operand);
      auto found = writer.find(buffer);
      bool isStored = !buffer.getDefiningOp() || found != writer.end();
      if (!isStored || !isa<RankedTensorType>(buffer.getType()) ||
          node.writes.contains(buffer))
        continue;
      node.reads.insert(buffer);
      if (found != writer.end()) {
        node.before.insert(found->second);
        nodes[found->second].after.insert(number);
      }
    }
  nodes.push_back(std::move(node));
  parent.push_back(number);
  order.push_back(number);
}

//===----------------------------------------------------------------------===//
// Which loops agree
//===----------------------------------------------------------------------===//

/// Equal loops, or such that run over the same elements along different axes.
bool KernelMerger::canReduceTogether(const Node &a, const Node &b) const {
  SmallVector<Loops, 4> kinds;
  llvm::SmallSet<uint8_t, 4> axes;
  for (const Node *node : {&a, &b})
    for (const Loops &loops : node->reductions) {
      if (loops.elements != a.reductions.front().elements)
        return false;
      if (!llvm::is_contained(kinds, loops))
        kinds.push_back(loops);
      axes.insert(loops.axis);
    }
  return kinds.size() == 1 || (mixesReductions && axes.size() == kinds.size() &&
                               !axes.contains(Loops::Middle));
}

/// A pointwise kernel beside or after a reduction.
bool KernelMerger::canFollow(const Node &reduction,
                             const Node &pointwise) const {
  ArrayRef<Loops> reductions = reduction.reductions;
  bool readsResult = llvm::any_of(reduction.writes, [&](Value value) {
    return pointwise.reads.contains(value) && value.getDefiningOp() &&
           kernelRoleOf(value.getDefiningOp()) == KernelRole::Reduction;
  });
  if (pointwise.elements == reductions.front().elements)
    return !readsResult || llvm::all_of(reductions, [](auto &each) {
      return each.axis == Loops::Inner;
    });
  bool isSmall = llvm::any_of(reductions, [&](auto &each) {
    return pointwise.elements == each.results;
  });
  return isSmall && (readsResult || reductions.size() == 1);
}

bool KernelMerger::haveEqualLoops(const Node &a, const Node &b) const {
  if (a.reductions.empty() && b.reductions.empty())
    return a.elements == b.elements;
  if (!a.reductions.empty() && !b.reductions.empty())
    return canReduceTogether(a, b);
  return a.reductions.empty() ? canFollow(b, a) : canFollow(a, b);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// True if a path of kernels leads from `first` over another one to `last`.
bool KernelMerger::isBetween(int first, int last) const {
  SmallVector<int> pending;
  llvm::SmallDenseSet<int> seen;
  int limit = nodes[last].position;
  auto visit = [&](int from) {
    for (int next : nodes[from].after)
      if (nodes[next].position <= limit && seen.insert(next).second)
        pending.push_back(next);
  };
  for (int next : nodes[first].after)
    if (next != last && nodes[next].position < limit &&
        seen.insert(next).second)
      pending.push_back(next);
  while (!pending.empty()) {
    int node = pending.pop_back_val();
    if (node == last)
      return true;
    visit(node);
  }
  return false;
}

bool KernelMerger::canMerge(int a, int b) const {
  const Node &first = nodes[a], &second = nodes[b];
  if (first.isExternal || second.isExternal ||
      first.isBackward != second.isBackward)
    return false;
  return second.position - first.position <= kMaxDistance &&
         haveEqualLoops(first, second) && !isBetween(a, b);
}

/// Moves what depends on `first` behind `second`, so that both can be one.
void KernelMerger::reorder(int first, int second) {
  int begin = nodes[first].position, end = nodes[second].position;
  llvm::SmallDenseSet<int> dependent;
  SmallVector<int> behind;
  int to = begin;
  for (int i = begin + 1; i < end; ++i) {
    int node = order[i];
    bool depends = nodes[node].before.contains(first) ||
                   llvm::any_of(nodes[node].before, [&](int earlier) {
                     return dependent.contains(earlier);
                   });
    if (depends) {
      dependent.insert(node);
      behind.push_back(node);
      continue;
    }
    order[to] = node;
    nodes[node].position = to++;
  }
  for (int node : {first, second})
    order[to] = node, nodes[node].position = to++;
  for (int node : behind)
    order[to] = node, nodes[node].position = to++;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

int KernelMerger::find(int node) {
  while (parent[node] != node)
    node = parent[node] = parent[parent[node]];
  return node;
}

std::vector<KernelMerger::Candidate> KernelMerger::candidates() const {
  llvm::MapVector<Value, SmallVector<int>> sharers;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    if (!node.isAlive || node.isExternal)
      continue;
    SmallVector<Value> touched(node.reads.begin(), node.reads.end());
    touched.append(node.writes.begin(), node.writes.end());
    for (Value value : touched)
      sharers[value].push_back(number);
  }
  llvm::MapVector<std::pair<int, int>, int64_t> shared;
  for (auto &[value, numbers] : sharers) {
    if (numbers.size() > kMaxSharers)
      numbers.truncate(kMaxSharers);
    int64_t bytes = estimatedBytes(value.getType());
    for (size_t i = 0; i < numbers.size(); ++i)
      for (size_t j = i + 1; j < numbers.size(); ++j)
        if (nodes[numbers[i]].isBackward == nodes[numbers[j]].isBackward)
          shared[{numbers[i], numbers[j]}] += bytes;
  }
  std::vector<Candidate> result;
  for (auto [pair, bytes] : shared)
    result.push_back({bytes, pair.first, pair.second});
  llvm::sort(result, [](const Candidate &a, const Candidate &b) {
    return std::tuple(-a.bytes, a.first, a.second) <
           std::tuple(-b.bytes, b.first, b.second);
  });
  return result;
}

void KernelMerger::merge(int first, int second) {
  reorder(first, second);
  Node &into = nodes[first], &from = nodes[second];
  parent[second] = first;
  from.isAlive = false;
  into.members.append(from.members.begin(), from.members.end());
  into.elements = std::max(into.elements, from.elements);
  for (const Loops &loops : from.reductions)
    if (!llvm::is_contained(into.reductions, loops))
      into.reductions.push_back(loops);
  into.reads.insert(from.reads.begin(), from.reads.end());
  into.writes.insert(from.writes.begin(), from.writes.end());
  for (int other : from.before) {
    nodes[other].after.erase(second);
    if (other != first && nodes[other].after.insert(first).second)
      into.before.insert(other);
    else if (other != first)
      into.before.insert(other);
  }
  for (int other : from.after) {
    nodes[other].before.erase(second);
    nodes[other].before.insert(first);
    into.after.insert(other);
  }
  into.after.erase(second);
}

bool KernelMerger::mergeOnce() {
  bool hasMerged = false;
  for (const Candidate &candidate : candidates()) {
    int a = find(candidate.first), b = find(candidate.second);
    if (a == b)
      continue;
    if (nodes[a].position > nodes[b].position)
      std::swap(a, b);
    if (!canMerge(a, b))
      continue;
    merge(a, b);
    hasMerged = true;
  }
  return hasMerged;
}

std::vector<KernelMerger::Members> KernelMerger::run() {
  for (int round = 0; round < kMaxRounds && mergeOnce(); ++round) {
  }
  std::vector<Members> result;
  for (Node &node : nodes) {
    if (!node.isAlive)
      continue;
    llvm::sort(node.members, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    result.push_back(std::move(node.members));
  }
  return result;
}
