//===- ApplyPrecision.cpp - mp-apply-precision ----------------------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Passes.h"
#include "passes/Placement/LibraryCalls.h"
#include "passes/Placement/StoredValues.h"

namespace mlir::mp {
#define GEN_PASS_DEF_APPLYPRECISION
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

namespace {
/// Rewrites reads of wide values into reads of half copies.
class HalfReads {
public:
  explicit HalfReads(RewriteLog &log) : log(log) {}

  /// False once the rewrite limit is reached.
  bool readAs(OpOperand &use, Type half) {
    bool isRounded = false;
    Value root = rootOf(use.get(), isRounded);
    if (isRounded ||
        !cast<RankedTensorType>(root.getType()).getElementType().isF32())
      return true;
    if (!log.apply(Rule::RoundStore, use.getOwner(), reasonFor(root, use, half),
                   entryFor(use, half)))
      return false;
    Value narrow =
        viewLike(use.get(), root, copyOf(root, half), use.getOwner());
    OpBuilder builder(use.getOwner());
    auto widened = CastOp::create(
        builder, derivedLocation(use.getOwner()->getLoc()), narrow,
        cast<RankedTensorType>(use.get().getType()).getElementType(),
        CastOrigin::mpopt);
    copyPhase(use.getOwner(), widened);
    use.set(widened.getOutput());
    return true;
  }

private:
  static SmallVector<NamedAttribute, 2> entryFor(OpOperand &use, Type half) {
    Builder builder(half.getContext());
    return {builder.getNamedAttr("half", TypeAttr::get(half)),
            builder.getNamedAttr(
                "operand", builder.getI64IntegerAttr(use.getOperandNumber()))};
  }

  static std::string reasonFor(Value root, OpOperand &use, Type half) {
    std::string text;
    llvm::raw_string_ostream os(text);
    Operation *producer = root.getDefiningOp();
    os << "operand " << use.getOperandNumber() << " is stored in " << half;
    bool isSaved =
        producer && !isBackward(producer) && isBackward(use.getOwner());
    os << (isSaved ? " for backward" : " between kernels");
    if (producer)
      os << ", made by " << frameworkCallee(producer);
    return text;
  }

  /// The half copy of `root`, stored by the kernel that makes it.
  Value copyOf(Value root, Type half) {
    Value &copy = copies[{root, half}];
    if (copy)
      return copy;
    OpBuilder builder(root.getContext());
    builder.setInsertionPointAfterValue(root);
    // A new one, for a graph that was traced cannot have nodes moved.
    auto narrowing = CastOp::create(builder, derivedLocation(root.getLoc()),
                                    root, half, CastOrigin::mpopt);
    Operation *producer = root.getDefiningOp();
    if (producer)
      copyPhase(producer, narrowing);
    auto stored =
        MaterializeOp::create(builder, derivedLocation(root.getLoc()),
                              narrowing.getType(), narrowing.getOutput());
    stored->setDiscardableAttrs(narrowing->getDiscardableAttrDictionary());
    for (CastOp equal : equalCopies(narrowing)) {
      equal.getOutput().replaceAllUsesWith(stored.getOutput());
      equal->erase();
    }
    return copy = stored.getOutput();
  }

  /// The conversions of the same value to the same type in the same phase.
  static SmallVector<CastOp> equalCopies(CastOp narrowing) {
    SmallVector<CastOp> equal;
    for (Operation *user : narrowing.getInput().getUsers()) {
      auto cast = dyn_cast<CastOp>(user);
      if (cast && cast != narrowing && cast.getTo() == narrowing.getTo() &&
          inSamePhase(cast, narrowing))
        equal.push_back(cast);
    }
    return equal;
  }

  /// `copy` through the views that lead from `root` to `value`.
  Value viewLike(Value value, Value root, Value copy, Operation *reader) {
    SmallVector<Operation *> views;
    for (; value != root; value = value.getDefiningOp()->getOperand(0))
      views.push_back(value.getDefiningOp());
    OpBuilder builder(reader);
    Type half = cast<RankedTensorType>(copy.getType()).getElementType();
    for (Operation *view : llvm::reverse(views)) {
      // Stores and conversions belong to the wide copy.
      if (isa<MaterializeOp, CastOp>(view))
        continue;
      Value &made = viewed[{{view, int(isBackward(reader))}, copy}];
      if (!made) {
        // The copy follows its root, and views of the root come later.
        builder.setInsertionPointAfter(view);
        Operation *clone = builder.clone(*view);
        clone->setLoc(derivedLocation(view->getLoc()));
        clone->setOperand(0, copy);
        clone->getResult(0).setType(resultIn(clone, half));
        if (isBackward(reader))
          copyPhase(reader, clone);
        made = clone->getResult(0);
      }
      copy = made;
    }
    return copy;
  }

  RewriteLog &log;
  /// By value and half type.
  llvm::DenseMap<std::pair<Value, Type>, Value> copies;
  /// By view, phase and viewed copy.
  llvm::DenseMap<std::pair<std::pair<Operation *, int>, Value>, Value> viewed;
};

/// Lets a product of halves store its accumulator.
bool storeWide(MatmulOp matmul, Type wide, RewriteLog &log) {
  if (!log.apply(Rule::WideResult, matmul,
                 "the f32 accumulator is stored, which every reader widens"))
    return false;
  OpBuilder builder(matmul->getContext());
  builder.setInsertionPointAfter(matmul);
  Type narrow = matmul.getOutput().getType().getElementType();
  auto type = withElementType(matmul.getOutput(), wide);
  matmul.getOutput().setType(type);
  auto narrowing =
      CastOp::create(builder, derivedLocation(matmul.getLoc()),
                     matmul.getOutput(), narrow, CastOrigin::autocast);
  narrowing->setDiscardableAttrs(matmul->getDiscardableAttrDictionary());
  narrowing->removeDiscardableAttr(MPDialect::kStoreAsAttrName);
  matmul.getOutput().replaceAllUsesExcept(narrowing.getOutput(), narrowing);
  return true;
}

/// Has a value stored by the kernel that makes it.
void store(Value value) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *producer = value.getDefiningOp();
  auto stored = MaterializeOp::create(
      builder, derivedLocation(producer->getLoc()), value.getType(), value);
  copyPhase(producer, stored);
  value.replaceAllUsesExcept(stored.getOutput(), stored);
}

/// Computes a library call of f32 operands from halves, as autocast would.
/// With `keepsResults` it hands on its f32 accumulator.
bool computeAs(Operation *call, Type half, bool keepsResults, RewriteLog &log) {
  OpBuilder builder(call);
  std::string reason;
  llvm::raw_string_ostream(reason)
      << "computed from operands in " << half
      << (keepsResults ? ", and the f32 accumulator is stored" : "");
  SmallVector<NamedAttribute, 2> entry = {
      builder.getNamedAttr("half", TypeAttr::get(half))};
  if (keepsResults)
    entry.push_back(
        builder.getNamedAttr("result", TypeAttr::get(builder.getF32Type())));
  if (!log.apply(Rule::HalfCall, call, reason, entry))
    return false;
  auto convert = [&](Value value, Type type) {
    auto cast = CastOp::create(builder, derivedLocation(call->getLoc()), value,
                               type, CastOrigin::autocast);
    copyPhase(call, cast);
    return cast;
  };
  for (OpOperand &use : call->getOpOperands())
    if (changesWithCall(call, use.get().getType()))
      use.set(convert(use.get(), half).getOutput());
  builder.setInsertionPointAfter(call);
  for (Value result : call->getResults()) {
    if (keepsResults || !changesWithCall(call, result.getType()))
      continue;
    Type wide = cast<RankedTensorType>(result.getType()).getElementType();
    result.setType(withElementType(result, half));
    CastOp widened = convert(result, wide);
    result.replaceAllUsesExcept(widened.getOutput(), widened);
  }
  return true;
}

struct ApplyPrecision : mp::impl::ApplyPrecisionBase<ApplyPrecision> {
  using ApplyPrecisionBase::ApplyPrecisionBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    RewriteLog log(getOperation(), getArgument());
    HalfReads reads(log);
    SmallVector<Operation *> marked;
    for (Operation &op : getOperation().getBody().front())
      if (llvm::any_of(hintNames(),
                       [&](StringRef name) { return op.hasAttr(name); }))
        marked.push_back(&op);
    for (Operation *op : marked)
      if (!apply(op, reads, log))
        break;
    for (Operation *op : marked)
      for (StringRef name : hintNames())
        op->removeAttr(name);
    log.commit();
  }

private:
  static std::array<StringRef, 3> hintNames() {
    return {MPDialect::kReadAsAttrName, MPDialect::kStoreAsAttrName,
            MPDialect::kComputeAsAttrName};
  }

  static bool apply(Operation *op, HalfReads &reads, RewriteLog &log) {
    if (auto hints = op->getAttrOfType<ArrayAttr>(MPDialect::kReadAsAttrName))
      for (auto [hint, use] : llvm::zip(hints, op->getOpOperands()))
        if (auto half = dyn_cast<TypeAttr>(hint))
          if (!reads.readAs(use, half.getValue()))
            return false;
    auto wide = op->getAttrOfType<TypeAttr>(MPDialect::kStoreAsAttrName);
    if (auto half = op->getAttrOfType<TypeAttr>(MPDialect::kComputeAsAttrName))
      return computeAs(op, half.getValue(), wide && isa<MatmulOp>(op), log);
    if (!wide)
      return true;
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return storeWide(matmul, wide.getValue(), log);
    store(op->getResult(0));
    return true;
  }
};
} // namespace
