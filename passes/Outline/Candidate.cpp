//===- Candidate.cpp - operations that one kernel could compute -----------===//

#include "passes/Outline/Candidate.h"
#include "passes/Outline/Grower.h"

using namespace mlir;
using namespace mlir::mp;

SmallVector<Operation *> Candidate::body() const {
  SmallVector<Operation *> sorted(ops.begin(), ops.end());
  sorted.append(copied.begin(), copied.end());
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

SmallVector<Value> Candidate::operands() const {
  llvm::SetVector<Value> operands;
  for (Operation *op : body())
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || (!ops.contains(producer) && !copied.contains(producer)))
        operands.insert(operand);
    }
  return operands.takeVector();
}

SmallVector<Value> Candidate::results() const {
  SmallVector<Value> results;
  for (Operation *op : body()) {
    if (!ops.contains(op))
      continue;
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !ops.contains(user); }))
        results.push_back(result);
  }
  return results;
}

/// True if one of the values has a place where kernels have no memory.
static bool hasTransposed(const Candidate &candidate, ArrayRef<Value> values) {
  return llvm::any_of(values, [&](Value value) {
    return candidate.places.lookup(value) == Place::Transposed;
  });
}

/// Only the first extent of what crosses the border may be dynamic (rule K2 of
/// the backend contract).
static bool hasInnerDynamic(ArrayRef<Value> values) {
  return llvm::any_of(values, [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return !type || llvm::any_of(type.getShape().drop_front(
                                     std::min<size_t>(1, type.getRank())),
                                 ShapedType::isDynamic);
  });
}

static void finish(Candidate &candidate) {
  SmallVector<Value> operands = candidate.operands(),
                     results = candidate.results();
  if (results.empty())
    candidate.whyNot = "nobody reads it";
  else if (!canRunAtOnce(candidate.ops))
    candidate.whyNot = "another operation has to run in the middle";
  else if (hasTransposed(candidate, operands) ||
           hasTransposed(candidate, results))
    candidate.whyNot = "a transposed value crosses its border";
  else if (hasInnerDynamic(operands) || hasInnerDynamic(results))
    candidate.whyNot = "an extent behind the first is dynamic";
}

std::optional<Candidate> mlir::mp::growMatmul(MatmulOp root, bool isAlone) {
  std::optional<Space> space = spaceOf(root);
  if (!space || regionRoleOf(root) != RegionRole::Matmul)
    return std::nullopt;
  Candidate candidate(KernelKind::matmul, root, *space);
  if (!candidate.places.add(root))
    return std::nullopt;
  candidate.ops.insert(root);
  Grower grower(candidate);
  grower.addFactors(root);
  if (!isAlone)
    grower.grow();
  grower.trim();
  finish(candidate);
  return candidate;
}

std::optional<Candidate> mlir::mp::growRows(Operation *root) {
  RegionRole role = regionRoleOf(root);
  if (role != RegionRole::Rows &&
      (role != RegionRole::Reduction || !reducesColumns(root)))
    return std::nullopt;
  std::optional<Space> space = spaceOf(root);
  if (!space)
    return std::nullopt;
  Candidate candidate(KernelKind::rows, root, *space);
  if (!candidate.places.add(root))
    return std::nullopt;
  candidate.ops.insert(root);
  Grower grower(candidate);
  grower.grow();
  grower.trim();
  finish(candidate);
  return candidate;
}
