//===- OutlineHotRegions.cpp - mp-outline-hot-regions ---------------------===//

#include "dialect/Graph/Graph.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Outline/RegionCost.h"
#include "passes/Passes.h"
#include "passes/RewriteLog.h"

namespace mlir::mp {
#define GEN_PASS_DEF_OUTLINEHOTREGIONS
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// "matmul_add_relu": the first different operations of a region that compute.
static std::string nameOf(const Candidate &candidate) {
  static constexpr size_t kMaxWords = 5;
  llvm::SetVector<StringRef> words;
  auto add = [&](Operation *op) {
    RegionRole role = regionRoleOf(op);
    if (role != RegionRole::View && role != RegionRole::Transpose &&
        words.size() < kMaxWords)
      words.insert(regionOpName(op).rsplit('.').second);
  };
  add(candidate.root);
  for (Operation *op : candidate.body())
    if (candidate.holds(op) && !isa<CastOp>(op))
      add(op);
  return llvm::join(words, "_");
}

/// Moves what reads the region, and stands before it, behind it.
static void moveReadersBehind(RegionOp region, Operation *first) {
  llvm::SmallPtrSet<Operation *, 16> late;
  SmallVector<Operation *> moved;
  for (Operation *op = first; op != region; op = op->getNextNode()) {
    bool reads = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return producer && (producer == region || late.contains(producer));
    });
    if (!reads)
      continue;
    late.insert(op);
    moved.push_back(op);
  }
  Operation *place = region;
  for (Operation *op : moved) {
    op->moveAfter(place);
    place = op;
  }
}

static RegionOp build(const Candidate &candidate, ArrayRef<Operation *> body,
                      OpBuilder &builder) {
  SmallVector<Value> operands = candidate.operands(),
                     results = candidate.results();
  Location loc = derivedLocation(candidate.root->getLoc());
  auto region = RegionOp::create(builder, loc, TypeRange(ValueRange(results)),
                                 candidate.kind, nameOf(candidate),
                                 /*kernel=*/StringAttr(), operands);
  if (isBackward(candidate.root))
    region->setAttr(MPDialect::kBackwardAttrName, builder.getUnitAttr());
  if (Attribute run = candidate.root->getAttr(MPDialect::kRecomputeAttrName))
    region->setAttr(MPDialect::kRecomputeAttrName, run);
  Block &block = region.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value operand : operands)
    mapping.map(operand,
                block.addArgument(operand.getType(), operand.getLoc()));
  builder.setInsertionPointToStart(&block);
  for (Operation *op : body) {
    Operation *clone = builder.clone(*op, mapping);
    if (candidate.copied.contains(op))
      clone->setLoc(derivedLocation(op->getLoc()));
  }
  SmallVector<Value> yielded = llvm::map_to_vector(
      results, [&](Value value) { return mapping.lookup(value); });
  YieldOp::create(builder, loc, yielded);
  return region;
}

static void outline(const Candidate &candidate) {
  SmallVector<Operation *> body = candidate.body();
  Operation *last = nullptr, *first = nullptr;
  for (Operation *op : body)
    if (candidate.holds(op)) {
      first = first ? first : op;
      last = op;
    }
  SmallVector<Value> results = candidate.results();
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  RegionOp region = build(candidate, body, builder);
  for (auto [value, result] : llvm::zip(results, region.getResults()))
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !candidate.holds(use.getOwner());
    });
  moveReadersBehind(region, first);
  for (Operation *op : llvm::reverse(body))
    if (op->use_empty() && op != region)
      op->erase();
}

namespace {
struct OutlineHotRegions : mp::impl::OutlineHotRegionsBase<OutlineHotRegions> {
  using OutlineHotRegionsBase::OutlineHotRegionsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || target == "off")
      return;
    std::optional<CostModel> model = loadModel(func);
    if (!model)
      return signalPassFailure();
    RewriteLog log(func, getArgument());
    SmallVector<MatmulOp> products(func.getOps<MatmulOp>());
    for (MatmulOp product : products)
      outlineProduct(product, *model, log);
    outlineRows(*model, log);
    log.commit();
  }

private:
  std::optional<CostModel> loadModel(func::FuncOp func);
  void outlineProduct(MatmulOp product, const CostModel &model,
                      RewriteLog &log);
  void outlineRows(const CostModel &model, RewriteLog &log);
  bool consider(std::optional<Candidate> candidate, Operation *root,
                const CostModel &model, RewriteLog &log);
};
} // namespace

/// `cpu` is the model that the function names, or else the host's.
std::optional<CostModel> OutlineHotRegions::loadModel(func::FuncOp func) {
  auto named = func->getAttrOfType<StringAttr>(MPDialect::kCostModelAttrName);
  std::string name = target;
  if (target == "cpu")
    name = named ? named.getValue().str() : hostCostModel().str();
  llvm::Expected<CostModel> model = loadCostModel(name);
  if (model)
    return std::move(*model);
  func.emitError() << "target of mp-outline-hot-regions: "
                   << llvm::toString(model.takeError());
  return std::nullopt;
}

/// True if the candidate became a region.
bool OutlineHotRegions::consider(std::optional<Candidate> candidate,
                                 Operation *root, const CostModel &model,
                                 RewriteLog &log) {
  if (!candidate)
    return false;
  std::string name = nameOf(*candidate);
  if (!candidate->whyNot.empty()) {
    log.miss(Rule::OutlineRegion, root, name + ": " + candidate->whyNot);
    return false;
  }
  if (numerics == Numerics::Strict) {
    log.miss(Rule::OutlineRegion, root,
             name + " would not keep the bits that numerics \"strict\" asks "
                    "for: sums in another order, other functions");
    return false;
  }
  RegionCost cost = costOf(*candidate, model);
  if (!all && !cost.pays()) {
    StringRef why = cost.share ? " would move "
                               : " is left to the library, "
                                 "for it is too small: ";
    log.miss(Rule::OutlineRegion, root, name + why + cost.text());
    return false;
  }
  if (!log.apply(Rule::OutlineRegion, root,
                 name + " of " + Twine(candidate->ops.size()) +
                     " operations moves " + cost.text()))
    return false;
  outline(*candidate);
  return true;
}

/// What comes after a product may cost more than it saves: results for others
/// that a fuser would have computed again. Then the product by itself.
void OutlineHotRegions::outlineProduct(MatmulOp product, const CostModel &model,
                                       RewriteLog &log) {
  std::optional<Candidate> alone = growMatmul(product, /*isAlone=*/true);
  std::optional<Candidate> grown = growMatmul(product);
  if (alone && grown && alone->whyNot.empty() && !all) {
    RegionCost ofAlone = costOf(*alone, model), ofGrown = costOf(*grown, model);
    // Beyond what sums of seconds are off.
    bool isBetter =
        !grown->whyNot.empty() || ofAlone.saved() > ofGrown.saved() + 1e-9;
    if (ofAlone.pays() && isBetter)
      grown = std::move(alone);
  }
  consider(std::move(grown), product, model, log);
}

void OutlineHotRegions::outlineRows(const CostModel &model, RewriteLog &log) {
  func::FuncOp func = getOperation();
  Block &body = func.getBody().front();
  // A region takes other roots with it, and moves what follows.
  llvm::DenseSet<Operation *> refused;
  for (bool found = true; found;) {
    found = false;
    for (Operation &op : body.without_terminator()) {
      if (refused.contains(&op))
        continue;
      std::optional<Candidate> candidate = growRows(&op);
      refused.insert(&op);
      if (consider(std::move(candidate), &op, model, log)) {
        found = true;
        break;
      }
    }
  }
}
