//===- RegionCost.cpp - whether a region is worth its kernel --------------===//

#include "passes/Outline/RegionCost.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Placement/Traffic.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::mp;

/// How far a fuser's kernels are followed around a candidate.
static constexpr int kHops = 2;
static constexpr size_t kMaxNeighbours = 64;

namespace {
using Ops = llvm::SetVector<Operation *>;

/// A function of some operations: what they read are its arguments, what others
/// read of them are its results.
class Extract {
public:
  Extract(const Ops &ops, func::FuncOp original);
  func::FuncOp getFunction() { return *func; }
  Operation *cloneOf(Operation *op) const { return clones.lookup(op); }

private:
  OwningOpRef<func::FuncOp> func;
  llvm::DenseMap<Operation *, Operation *> clones;
};
} // namespace

static SmallVector<Operation *> inOrder(const Ops &ops) {
  SmallVector<Operation *> sorted(ops.begin(), ops.end());
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

Extract::Extract(const Ops &ops, func::FuncOp original) {
  OpBuilder builder(original.getContext());
  func = func::FuncOp::create(original.getLoc(), "extract",
                              builder.getFunctionType({}, {}));
  if (Attribute target = original->getAttr(MPDialect::kTargetAttrName))
    (*func)->setAttr(MPDialect::kTargetAttrName, target);
  Block *block = func->addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  SmallVector<Value> results;
  for (Operation *op : inOrder(ops)) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand,
                    block->addArgument(operand.getType(), operand.getLoc()));
    clones[op] = builder.clone(*op, mapping);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !ops.contains(user); }))
        results.push_back(mapping.lookup(result));
  }
  func::ReturnOp::create(builder, original.getLoc(), results);
}

static bool isFusible(Operation *op) {
  KernelRole role = kernelRoleOf(op);
  return role != KernelRole::External && role != KernelRole::Nothing;
}

/// The candidate and what a fuser could compute in one kernel with it.
static Ops neighbourhoodOf(const Candidate &candidate) {
  Ops ops = candidate.ops;
  size_t begin = 0;
  auto add = [&](Operation *op) {
    if (op && op->getBlock() == candidate.root->getBlock() && isFusible(op) &&
        isBackward(op) == isBackward(candidate.root) &&
        ops.size() < candidate.ops.size() + kMaxNeighbours && ops.insert(op) &&
        !canRunAtOnce(ops))
      ops.remove(op); // something that is no neighbour runs in between
  };
  for (int hop = 0; hop != kHops; ++hop)
    for (size_t end = ops.size(); begin != end; ++begin) {
      Operation *op = ops[begin];
      for (Operation *user : op->getUsers())
        add(user);
      // A creation or a conversion of the factors is none of our business.
      if (!isa<MatmulOp>(op))
        for (Value operand : op->getOperands())
          add(operand.getDefiningOp());
    }
  return ops;
}

//===----------------------------------------------------------------------===//
// Seconds
//===----------------------------------------------------------------------===//

static std::string typeText(Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << elementTypeOf(value);
  return text;
}

static int64_t extentOf(int64_t extent) {
  return ShapedType::isDynamic(extent) ? kDynamicSize : extent;
}

/// Batch, m, n and k of a product.
static std::array<int64_t, 4> sizesOf(MatmulOp op) {
  ArrayRef<int64_t> out = op.getOutput().getType().getShape();
  int64_t k = op.getLhs().getType().getShape().back();
  return {out.size() == 3 ? extentOf(out[0]) : 1, extentOf(out[out.size() - 2]),
          extentOf(out.back()), extentOf(k)};
}

static double secondsOf(MatmulOp op, const CostModel &model) {
  auto [batch, m, n, k] = sizesOf(op);
  return model.matmulSeconds(typeText(op.getLhs()), batch, m, n, k);
}

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += estimatedBytes(value.getType());
  return bytes;
}

/// What the kernels of `func` cost. The time of a product is the library's.
static RegionCost::Side costOf(func::FuncOp func, const CostModel &model) {
  RegionCost::Side side;
  FusionEstimate fusion(func);
  Traffic traffic = countTraffic(func, fusion);
  for (auto [kernel, moved] :
       llvm::zip_equal(fusion.getKernels(), traffic.kernels)) {
    int64_t bytes = moved.readBytes + moved.storedBytes;
    side.bytes += bytes;
    side.kernels += 1;
    auto matmul = dyn_cast<MatmulOp>(kernel.stored.front());
    side.seconds +=
        matmul ? secondsOf(matmul, model) : model.sweepSeconds(bytes);
  }
  return side;
}

/// What our own kernel costs. Beside its operands and its result a product
/// moves what the epilogue reads and writes.
static RegionCost::Side costOfKernel(const Candidate &candidate,
                                     const CostModel &model, double share) {
  RegionCost::Side side;
  side.kernels = 1;
  side.bytes = bytesOf(candidate.operands()) + bytesOf(candidate.results());
  auto matmul = dyn_cast<MatmulOp>(candidate.root);
  if (!matmul) {
    side.seconds = side.bytes / model.bandwidth / share + model.launch;
    return side;
  }
  int64_t own = bytesOf({matmul.getLhs(), matmul.getRhs(), matmul.getOutput()});
  side.seconds =
      secondsOf(matmul, model) / share + (side.bytes - own) / model.bandwidth;
  return side;
}

/// The first row of the table that fits.
static std::optional<double> shareOf(const Candidate &candidate,
                                     const CostModel &model) {
  int64_t least, work;
  std::string type = typeText(candidate.root->getOperand(0));
  if (auto matmul = dyn_cast<MatmulOp>(candidate.root)) {
    auto [batch, m, n, k] = sizesOf(matmul);
    least = std::min({m, n, k});
    work = batch * m * n * k;
  } else {
    const Space &space = candidate.places.getSpace();
    least = space.columns;
    work = extentOf(space.allRows()) * space.columns;
  }
#define MP_EFFICIENCY(MODEL, KIND, TYPE, LEAST, WORK, SHARE)                   \
  if (StringRef(model.name).starts_with(MODEL) &&                              \
      candidate.kind == KernelKind::KIND &&                                    \
      (StringRef(TYPE).empty() || type == (TYPE)) && least >= (LEAST) &&       \
      work >= (WORK))                                                          \
    return SHARE;
#include "passes/Outline/Efficiency.def"
  return std::nullopt;
}

RegionCost mlir::mp::costOf(const Candidate &candidate,
                            const CostModel &model) {
  auto func = candidate.root->getParentOfType<func::FuncOp>();
  Ops around = neighbourhoodOf(candidate);
  RegionCost cost;
  cost.share = shareOf(candidate, model);
  cost.without = ::costOf(Extract(around, func).getFunction(), model);
  for (Operation *op : candidate.ops)
    around.remove(op);
  cost.with = ::costOf(Extract(around, func).getFunction(), model);
  RegionCost::Side kernel =
      costOfKernel(candidate, model, cost.share.value_or(1));
  cost.with.seconds += kernel.seconds;
  cost.with.bytes += kernel.bytes;
  cost.with.kernels += kernel.kernels;
  return cost;
}

std::string RegionCost::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << with.bytes << " B in " << with.kernels << " kernels instead of "
     << without.bytes << " B in " << without.kernels << ", "
     << llvm::format("%.1f", with.seconds * 1e6) << " us instead of "
     << llvm::format("%.1f", without.seconds * 1e6) << " us";
  if (share)
    os << " at " << llvm::format("%.2f", *share) << " of the library's speed";
  return text;
}
