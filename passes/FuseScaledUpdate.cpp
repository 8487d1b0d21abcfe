//===- FuseScaledUpdate.cpp - mp-fuse-scaled-update -----------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/Elementwise.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/RewriteLog.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::mp {
#define GEN_PASS_DEF_FUSESCALEDUPDATE
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

static bool hasDimensions(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0;
}

static bool isCopyInPlace(AtenOp op) {
  return op.getCallee() == "aten.copy_.default" && op->getNumOperands() == 2;
}

namespace {
/// Values that one sweep computes, with all that is elementwise before them.
struct Sweep {
  SmallVector<Value> roots;
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> leaves; ///< what the sweep reads

  /// Adds `root` and everything elementwise that it depends on.
  void add(Value root);
  /// The operations in the order of the block.
  SmallVector<Operation *> inOrder() const;
  /// The operation after which all leaves exist; null for the block's begin.
  Operation *lastLeaf() const;
  bool replacesArgument() const;
  bool readsGradient() const;
};
} // namespace

void Sweep::add(Value root) {
  roots.push_back(root);
  SmallVector<Operation *> pending{root.getDefiningOp()};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!ops.insert(op))
      continue;
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (source && isElementwise(source))
        pending.push_back(source);
      else
        leaves.insert(operand);
    }
  }
}

SmallVector<Operation *> Sweep::inOrder() const {
  SmallVector<Operation *> sorted(ops.begin(), ops.end());
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

Operation *Sweep::lastLeaf() const {
  Operation *last = nullptr;
  for (Value leaf : leaves) {
    Operation *op = leaf.getDefiningOp();
    if (op && (!last || last->isBeforeInBlock(op)))
      last = op;
  }
  return last;
}

/// True if a result is the next value of an argument: of its type, computed
/// from it, and stored in it or returned in its place.
bool Sweep::replacesArgument() const {
  return llvm::any_of(leaves, [&](Value leaf) {
    return isa<BlockArgument>(leaf) && llvm::any_of(roots, [&](Value root) {
             return root.getType() == leaf.getType();
           });
  });
}

/// True if there is more to read than what is replaced: a constant decay of all
/// weights has no gradient.
bool Sweep::readsGradient() const {
  return llvm::count_if(leaves, hasDimensions) > 1;
}

namespace {
struct FuseScaledUpdate : mp::impl::FuseScaledUpdateBase<FuseScaledUpdate> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    RewriteLog log(getOperation(), getArgument());
    for (Sweep &sweep : sweepsOf(getOperation()))
      fuse(sweep, log);
    log.commit();
  }

private:
  static SmallVector<Value> rootsOf(func::FuncOp func);
  static std::vector<Sweep> sweepsOf(func::FuncOp func);
  static StringRef whyNot(const Sweep &sweep);
  static void fuse(Sweep &sweep, RewriteLog &log);
  static ScaledUpdateOp build(const Sweep &sweep, ArrayRef<Operation *> ops,
                              OpBuilder &builder);
};
} // namespace

/// Elementwise results that leave the function, or are written to an argument.
SmallVector<Value> FuseScaledUpdate::rootsOf(func::FuncOp func) {
  llvm::SetVector<Value> roots;
  Block &body = func.getBody().front();
  auto consider = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && isElementwise(op))
      roots.insert(value);
  };
  for (AtenOp op : body.getOps<AtenOp>())
    if (isCopyInPlace(op))
      consider(op->getOperand(1));
  for (Value value : body.getTerminator()->getOperands())
    consider(value);
  return roots.takeVector();
}

/// Roots of one shape that share an operation or read one array are one sweep:
/// weight, moments and half copy of one parameter.
std::vector<Sweep> FuseScaledUpdate::sweepsOf(func::FuncOp func) {
  SmallVector<Value> roots = rootsOf(func);
  std::vector<Sweep> slices(roots.size());
  llvm::EquivalenceClasses<unsigned> classes;
  llvm::DenseMap<const void *, unsigned> owner;
  for (unsigned i = 0, end = roots.size(); i != end; ++i) {
    slices[i].add(roots[i]);
    classes.insert(i);
    auto share = [&](const void *what) {
      auto [it, isNew] = owner.try_emplace(what, i);
      if (!isNew)
        classes.unionSets(it->second, i);
    };
    for (Operation *op : slices[i].ops)
      share(op);
    for (Value leaf : slices[i].leaves)
      if (hasDimensions(leaf))
        share(leaf.getAsOpaquePointer());
  }
  std::vector<Sweep> sweeps;
  llvm::DenseMap<unsigned, unsigned> sweepOf;
  for (unsigned i = 0, end = roots.size(); i != end; ++i) {
    unsigned leader = classes.getLeaderValue(i);
    auto [it, isNew] = sweepOf.try_emplace(leader, sweeps.size());
    if (isNew)
      sweeps.emplace_back();
    sweeps[it->second].add(roots[i]);
  }
  return sweeps;
}

/// "" if the sweep is the update of a parameter that can be one operation.
StringRef FuseScaledUpdate::whyNot(const Sweep &sweep) {
  if (!sweep.replacesArgument())
    return "no result takes the place of an argument";
  if (!sweep.readsGradient())
    return "it reads one array only";
  return "";
}

ScaledUpdateOp FuseScaledUpdate::build(const Sweep &sweep,
                                       ArrayRef<Operation *> ops,
                                       OpBuilder &builder) {
  Location loc = derivedLocation(sweep.roots.front().getLoc());
  auto update =
      ScaledUpdateOp::create(builder, loc, TypeRange(ValueRange(sweep.roots)),
                             sweep.leaves.getArrayRef());
  Block &body = update.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value leaf : sweep.leaves)
    mapping.map(leaf, body.addArgument(leaf.getType(), leaf.getLoc()));
  builder.setInsertionPointToStart(&body);
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  SmallVector<Value> results = llvm::map_to_vector(
      sweep.roots, [&](Value root) { return mapping.lookup(root); });
  YieldOp::create(builder, loc, results);
  return update;
}

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }
  return bytes;
}

void FuseScaledUpdate::fuse(Sweep &sweep, RewriteLog &log) {
  SmallVector<Operation *> ops = sweep.inOrder();
  Operation *last = ops.back();
  if (StringRef why = whyNot(sweep); !why.empty())
    return log.miss(Rule::FuseScaledUpdate, last, why);
  SmallVector<Value> arrays =
      llvm::filter_to_vector(sweep.leaves.getArrayRef(), hasDimensions);
  if (!log.apply(Rule::FuseScaledUpdate, last,
                 Twine(sweep.ops.size()) +
                     " operations in one sweep that reads " +
                     Twine(bytesOf(arrays)) + " bytes and writes " +
                     Twine(bytesOf(sweep.roots))))
    return;
  OpBuilder builder(last);
  if (Operation *start = sweep.lastLeaf())
    builder.setInsertionPointAfter(start);
  else
    builder.setInsertionPointToStart(last->getBlock());
  ScaledUpdateOp update = build(sweep, ops, builder);
  for (auto [root, result] : llvm::zip(sweep.roots, update.getResults()))
    root.replaceUsesWithIf(result, [&](OpOperand &use) {
      return update->isBeforeInBlock(use.getOwner());
    });
  // What others read before, such as the norm of the unscaled gradients, they
  // compute from what the sweep reads: nothing is stored for them.
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}
