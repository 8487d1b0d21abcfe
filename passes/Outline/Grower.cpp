//===- Grower.cpp - grows a candidate step by step ------------------------===//

#include "passes/Outline/Grower.h"
#include "dialect/IR/Pins.h"
#include "passes/Placement/Fusion.h"

using namespace mlir;
using namespace mlir::mp;

/// A kernel with more operations or operands is nobody's gain.
static constexpr size_t kMaxOps = 96;
static constexpr size_t kMaxOperands = 24;
/// Operands become known, readers become possible: rounds until nothing joins.
static constexpr int kMaxRounds = 4;

//===----------------------------------------------------------------------===//
// What may join
//===----------------------------------------------------------------------===//

static bool isRoleOf(KernelKind kind, RegionRole role) {
  switch (role) {
  case RegionRole::Pointwise:
  case RegionRole::View:
  case RegionRole::Transpose:
  case RegionRole::Reduction:
    return true;
  case RegionRole::RowIndexed:
  case RegionRole::Rows:
    return kind == KernelKind::rows;
  case RegionRole::None:
  case RegionRole::Constant: // copied instead
  case RegionRole::Matmul:
    return false;
  }
  llvm_unreachable("unknown role");
}

static bool isInPhaseOf(Operation *op, Operation *other) {
  return isBackward(op) == isBackward(other) &&
         op->getAttr(MPDialect::kRecomputeAttrName) ==
             other->getAttr(MPDialect::kRecomputeAttrName);
}

/// The user asked for exactly what was traced.
static bool isLeftAlone(Operation *op) {
  return llvm::any_of(pinsOf(op), [](PinAttr pin) {
    return pin.getFormat() == PinFormat::keep;
  });
}

bool Grower::mayJoin(Operation *op) const {
  RegionRole role = regionRoleOf(op);
  if (!isRoleOf(candidate.kind, role) || candidate.holds(op) ||
      candidate.ops.size() >= kMaxOps ||
      op->getBlock() != candidate.root->getBlock() ||
      !isInPhaseOf(op, candidate.root) || isLeftAlone(op))
    return false;
  // An epilogue sees one element of its row at a time.
  return candidate.kind == KernelKind::rows || role != RegionRole::Reduction ||
         !reducesColumns(op);
}

/// True if something reads the value from memory, whatever is fused.
static bool isReadFromMemory(Operation *user, Operation *op) {
  return user->hasTrait<OpTrait::IsTerminator>() ||
         kernelRoleOf(user) == KernelRole::External || !isInPhaseOf(user, op);
}

/// What a sum over rows reads is complete only after the last row.
bool Grower::obeysSums(Operation *op) const {
  bool readsSum = llvm::any_of(
      op->getOperands(), [&](Value operand) { return sums.contains(operand); });
  if (!readsSum)
    return true;
  if (regionRoleOf(op) == RegionRole::View)
    return true;
  // A matmul kernel rounds its sums once (rule K7).
  if (candidate.kind == KernelKind::matmul)
    return false;
  return regionRoleOf(op) == RegionRole::Pointwise &&
         candidate.places.lookup(op->getResult(0)) != Place::Element &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return sums.contains(operand) ||
                  candidate.places.lookup(operand) != Place::Element;
         });
}

bool Grower::readsTransposedFromOutside(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return candidate.places.lookup(operand) == Place::Transposed &&
           !candidate.holds(operand.getDefiningOp());
  });
}

//===----------------------------------------------------------------------===//
// Growing
//===----------------------------------------------------------------------===//

bool Grower::move(Operation *op) {
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp();
        source && regionRoleOf(source) == RegionRole::Constant)
      addCopy(source);
  if (!candidate.places.add(op) || !obeysSums(op) ||
      readsTransposedFromOutside(op))
    return false;
  candidate.ops.insert(op);
  if (candidate.operands().size() > kMaxOperands ||
      !canRunAtOnce(candidate.ops)) {
    candidate.ops.remove(op);
    return false;
  }
  bool isSum = regionRoleOf(op) == RegionRole::Reduction && !reducesColumns(op);
  if (isSum || llvm::any_of(op->getOperands(), [&](Value operand) {
        return sums.contains(operand);
      }))
    sums.insert(op->result_begin(), op->result_end());
  return true;
}

bool Grower::addReader(Operation *op) { return mayJoin(op) && move(op); }

bool Grower::addCopy(Operation *op) {
  return !candidate.copied.contains(op) && candidate.places.add(op) &&
         candidate.copied.insert(op);
}

bool Grower::addProducer(Operation *op) {
  if (!op || candidate.holds(op))
    return false;
  RegionRole role = regionRoleOf(op);
  if (role == RegionRole::Constant)
    return addCopy(op);
  return mayJoin(op) && role != RegionRole::Reduction &&
         role != RegionRole::Transpose && move(op);
}

bool Grower::growAround(Operation *op) {
  bool changed = false;
  for (Value operand : op->getOperands())
    if (candidate.places.lookup(operand))
      changed |= addProducer(operand.getDefiningOp());
  for (Operation *user : llvm::to_vector(op->getUsers()))
    changed |= addReader(user);
  return changed;
}

void Grower::grow() {
  for (int round = 0; round != kMaxRounds; ++round) {
    bool changed = false;
    // Both grow while they are gone through.
    for (size_t i = 0; i != candidate.ops.size();)
      changed |= growAround(candidate.ops[i++]);
    for (size_t i = 0; i != candidate.copied.size();)
      for (Value operand : candidate.copied[i++]->getOperands())
        if (candidate.places.lookup(operand))
          changed |= addProducer(operand.getDefiningOp());
    if (!changed)
      return;
  }
}

//===----------------------------------------------------------------------===//
// Factors of a product
//===----------------------------------------------------------------------===//

/// Sums of a factor over the dimension that the product sums over, too.
void Grower::addSumsOf(Value factor, bool isLhs, int64_t summed) {
  for (Operation *user : llvm::to_vector(factor.getUsers())) {
    if (!mayJoin(user) || regionOpName(user) != "aten.sum" ||
        reducedDims(user) != SmallVector<int64_t>{summed} ||
        !candidate.places.placeSum(user, isLhs ? Place::Row : Place::Column))
      continue;
    candidate.ops.insert(user);
    if (canRunAtOnce(candidate.ops))
      sums.insert(user->getResult(0));
    else
      candidate.ops.remove(user);
  }
}

void Grower::addFactors(MatmulOp root) {
  for (Value factor : {root.getLhs(), root.getRhs()}) {
    bool isLhs = factor == root.getLhs(), isTransposed = false;
    int64_t rank = cast<RankedTensorType>(factor.getType()).getRank();
    auto addSums = [&] {
      // lhs is [m, k] and rhs is [k, n].
      if (rank == 2)
        addSumsOf(factor, isLhs, isLhs != isTransposed ? 1 : 0);
    };
    addSums();
    while (Operation *op = factor.getDefiningOp()) {
      if (regionRoleOf(op) != RegionRole::Transpose)
        break;
      candidate.copied.insert(op);
      factor = op->getOperand(0);
      isTransposed = !isTransposed;
      addSums();
    }
  }
}

//===----------------------------------------------------------------------===//
// Trimming
//===----------------------------------------------------------------------===//

bool Grower::isLeaf(Operation *op) const {
  return llvm::none_of(op->getUsers(),
                       [&](Operation *user) { return candidate.holds(user); });
}

/// True if a reader stores the conversion's result for itself.
static bool isStoredByReader(Operation *op) {
  SmallVector<Operation *> pending{op};
  while (!pending.empty()) {
    Operation *next = pending.pop_back_val();
    for (Operation *user : next->getUsers()) {
      if (isReadFromMemory(user, op))
        return true;
      if (kernelRoleOf(user) == KernelRole::View)
        pending.push_back(user);
    }
  }
  return false;
}

/// Views cost nothing outside, and a widening at the border doubles what
/// crosses it.
bool Grower::isWorthless(Operation *op) const {
  RegionRole role = regionRoleOf(op);
  if (role == RegionRole::View || role == RegionRole::Transpose)
    return true;
  auto cast = dyn_cast<CastOp>(op);
  return cast && cast.isExact() && !isStoredByReader(op);
}

/// Removes an operation and what is computed of it.
void Grower::remove(Operation *op) {
  if (!candidate.ops.remove(op))
    return;
  for (Operation *user : op->getUsers())
    remove(user);
}

/// Removes an operation and what it is computed of.
void Grower::removeUpwards(Operation *op) {
  if (!op || !candidate.ops.remove(op))
    return;
  for (Value operand : op->getOperands())
    removeUpwards(operand.getDefiningOp());
}

/// True if the root, or another reduction, stands before `op`.
bool Grower::dependsOnReduction(Operation *op) {
  RegionRole role = regionRoleOf(op);
  if (op == candidate.root || role == RegionRole::Reduction ||
      role == RegionRole::Rows)
    return true;
  auto [known, isNew] = dependent.try_emplace(op, false);
  if (!isNew)
    return known->second;
  bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && candidate.holds(producer) &&
           dependsOnReduction(producer);
  });
  return dependent[op] = depends;
}

/// True if it is cheaper to store the result than to read its operands once
/// more: a residual stream.
static bool isWorthStoring(Operation *op, const Places &places) {
  int64_t read = 0;
  for (Value operand : op->getOperands())
    if (places.lookup(operand) == Place::Element)
      read += estimatedBytes(operand.getType());
  return read > estimatedBytes(op->getResult(0).getType());
}

/// Whether `op`, which stands before all reductions, is better left to a
/// reader outside: it would be stored for that reader alone.
bool Grower::belongsOutside(Operation *op) {
  if (dependsOnReduction(op))
    return false;
  // A kernel stores elements, and what it reduces.
  if (candidate.places.lookup(op->getResult(0)) != Place::Element)
    return true;
  if (isWorthStoring(op, candidate.places))
    return false;
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !candidate.holds(user) && !candidate.copied.contains(user) &&
           !isReadFromMemory(user, op);
  });
}

/// A view of what comes from outside costs nothing there and here.
bool Grower::becomesCopy(Operation *op) const {
  return regionRoleOf(op) == RegionRole::View &&
         llvm::none_of(op->getOperands(), [&](Value operand) {
           Operation *producer = operand.getDefiningOp();
           return producer && candidate.holds(producer);
         });
}

bool Grower::trimOnce() {
  for (Operation *op : llvm::to_vector(candidate.ops)) {
    if (op == candidate.root)
      continue;
    bool leaves = llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !candidate.holds(user);
    });
    bool isTransposed =
        candidate.places.lookup(op->getResult(0)) == Place::Transposed;
    if ((leaves && isTransposed) || (isLeaf(op) && isWorthless(op)))
      return remove(op), true;
    if (leaves && becomesCopy(op)) {
      candidate.ops.remove(op);
      candidate.copied.insert(op);
      return true;
    }
    if (leaves && belongsOutside(op))
      return removeUpwards(op), true;
  }
  return false;
}

void Grower::trim() {
  while (trimOnce()) {
  }
}
