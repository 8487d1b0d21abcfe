//===- WidenPinned.cpp - mp-widen-pinned ----------------------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/Pins.h"
#include "dialect/IR/Target.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Passes.h"
#include "passes/Pins/PinRules.h"
#include "passes/Policy/Decisions.h"

namespace mlir::mp {
#define GEN_PASS_DEF_WIDENPINNED
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

static bool isHalfTensor(Value value) {
  return isa<RankedTensorType>(value.getType()) && isHalf(elementOf(value));
}

/// Kinds that compute in the type of their operands.
static bool computes(OpKind kind) {
  switch (kind) {
  case OpKind::Pointwise:
  case OpKind::Reduction:
  case OpKind::Norm:
  case OpKind::Softmax:
  case OpKind::Activation:
  case OpKind::Loss:
    return true;
  default:
    return isExternalKind(kind);
  }
}

/// Why `op` cannot be computed in f32 instead; empty if it can.
static StringRef whyNotWide(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || !computes(precision.getOpKind()) || !isMemoryEffectFree(op))
    return "its type does not follow from its operands'";
  if (namesDtype(op))
    return "an argument names its type";
  auto isOther = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isFloatTensor(type) && !isHalf(element) && !element.isF32();
  };
  bool hasOther = llvm::any_of(op->getOperandTypes(), isOther) ||
                  llvm::any_of(op->getResultTypes(), isOther);
  return hasOther ? "it has a type other than f32 and a half" : "";
}

namespace {
/// What the pins of one operation ask for.
struct Demand {
  enum class By { Nobody, Policy, Router };
  By by = By::Nobody;
  bool result = false;
  /// Operands that are to be read as they were before autocast rounded them.
  SmallVector<int64_t> operands;

  static Demand of(Operation *op);
};
} // namespace

Demand Demand::of(Operation *op) {
  Demand demand;
  for (PinAttr pin : pinsOf(op)) {
    if (pin.getFormat() != PinFormat::fp32)
      continue;
    StringRef rule = pin.getRule().getValue();
    bool isPolicy = rule == kPolicyPinRule;
    bool isRouter = rule == pinRuleName(PinRule::Router) && isa<MatmulOp>(op);
    if (!isPolicy && !isRouter)
      continue;
    demand.result |= pinsResult(pin, 0);
    if (!isPolicy) {
      demand.by = std::max(demand.by, By::Router);
      continue;
    }
    demand.by = By::Policy;
    for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
      if (pinsOperand(pin, i) && isHalfTensor(op->getOperand(i)) &&
          !llvm::is_contained(demand.operands, i))
        demand.operands.push_back(i);
  }
  llvm::sort(demand.operands);
  return demand;
}

/// Views between a rounding and its reader that the wide value can take too.
static bool isPassable(Operation *op) {
  auto precision = dyn_cast_or_null<PrecisionOpInterface>(op);
  return precision && isDataMovementKind(precision.getOpKind()) &&
         op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         isMemoryEffectFree(op) && !namesDtype(op) &&
         hasExactFillers(op, Float32Type::get(op->getContext()));
}

/// The f32 value that autocast rounded to `half`, seen through the views
/// between; null if nothing of the kind is there.
static Value unrounded(Value half, Operation *reader) {
  SmallVector<Operation *> views;
  Operation *op = half.getDefiningOp();
  for (; isPassable(op); op = op->getOperand(0).getDefiningOp())
    views.push_back(op);
  auto rounding = dyn_cast_or_null<CastOp>(op);
  if (!rounding || rounding.getOrigin() != CastOrigin::autocast ||
      !rounding.getFrom().isF32() || !isHalf(rounding.getTo()))
    return {};
  Value wide = rounding.getInput();
  OpBuilder builder(reader);
  for (Operation *view : llvm::reverse(views)) {
    Operation *clone = builder.clone(*view);
    clone->setLoc(derivedLocation(view->getLoc()));
    clone->setOperand(0, wide);
    clone->getResult(0).setType(resultIn(clone, builder.getF32Type()));
    copyPhase(reader, clone);
    wide = clone->getResult(0);
  }
  return wide;
}

namespace {
struct WidenPinned : mp::impl::WidenPinnedBase<WidenPinned> {
  using WidenPinnedBase::WidenPinnedBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    RewriteLog log(getOperation(), getArgument());
    SmallVector<Operation *> pinned;
    for (Operation &op : getOperation().getBody().front())
      if (!pinsOf(&op).empty())
        pinned.push_back(&op);
    for (Operation *op : pinned)
      if (!visit(op, log))
        break;
    log.commit();
  }

private:
  /// False once the rewrite limit is reached.
  bool visit(Operation *op, RewriteLog &log);
  bool isAllowed(const Demand &demand) const {
    return demand.by == Demand::By::Policy || numerics != Numerics::Strict;
  }
  static void widenOperands(Operation *op, const Demand &demand);
  static void narrowResults(Operation *op, bool mayDrop);
};
} // namespace

/// A product of halves that the target can give an f32 result.
static bool hasWideProduct(Operation *op) {
  return isa<MatmulOp>(op) && targetOf(op->getParentOfType<func::FuncOp>())
                                  .hasHalfMatmulWithF32Result;
}

static std::string reasonOf(const Demand &demand) {
  if (demand.by == Demand::By::Router)
    return "the f32 accumulator chooses an expert";
  return demand.operands.empty()
             ? "the policy wants its result in f32"
             : "the policy wants it computed from unrounded operands";
}

bool WidenPinned::visit(Operation *op, RewriteLog &log) {
  Demand demand = Demand::of(op);
  bool hasHalf = llvm::any_of(op->getResults(), isHalfTensor);
  if (demand.by == Demand::By::Nobody || !isAllowed(demand) || !hasHalf)
    return true;
  bool isPolicy = demand.by == Demand::By::Policy;
  Rule rule = isPolicy ? Rule::WidenAsAsked : Rule::WideResult;
  if (StringRef why = whyNotWide(op); !why.empty()) {
    log.miss(rule, op, why);
    return true;
  }
  if (!isPolicy && !hasWideProduct(op)) {
    // Widened operands and an f32 result would move more bytes than the trace.
    log.miss(rule, op,
             "the target has no product of halves with an f32 result");
    return true;
  }
  Builder builder(op->getContext());
  SmallVector<NamedAttribute, 1> entry;
  if (!demand.operands.empty())
    entry.push_back(builder.getNamedAttr(
        "unrounded", builder.getDenseI64ArrayAttr(demand.operands)));
  if (!log.apply(rule, op, reasonOf(demand), entry))
    return false;
  if (!demand.operands.empty() || !hasWideProduct(op))
    widenOperands(op, demand);
  narrowResults(op, demand.result);
  return true;
}

void WidenPinned::widenOperands(Operation *op, const Demand &demand) {
  OpBuilder builder(op);
  Type f32 = builder.getF32Type();
  for (OpOperand &use : op->getOpOperands()) {
    if (!isHalfTensor(use.get()))
      continue;
    bool wantsSource =
        llvm::is_contained(demand.operands, int64_t(use.getOperandNumber()));
    if (Value source = wantsSource ? unrounded(use.get(), op) : Value()) {
      use.set(source);
      continue;
    }
    auto widening = CastOp::create(builder, derivedLocation(op->getLoc()),
                                   use.get(), f32, CastOrigin::mpopt);
    copyPhase(op, widening);
    use.set(widening.getOutput());
  }
}

/// The results become f32 and are rounded for those who read them; a rounding
/// that `mayDrop` is like one of autocast.
void WidenPinned::narrowResults(Operation *op, bool mayDrop) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  // A record names a rounding by its node, which several results share.
  bool isOne = op->getNumResults() == 1;
  CastOrigin origin =
      mayDrop && isOne ? CastOrigin::autocast : CastOrigin::mpopt;
  for (OpResult result : op->getResults()) {
    if (!isHalfTensor(result))
      continue;
    Type narrow = elementOf(result);
    result.setType(withElementType(result, builder.getF32Type()));
    auto rounding = CastOp::create(builder, derivedLocation(op->getLoc()),
                                   result, narrow, origin);
    rounding->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rounding->removeDiscardableAttr(MPDialect::kPinAttrName);
    result.replaceAllUsesExcept(rounding.getOutput(), rounding);
  }
}
