//===- PlanSaves.cpp - mp-plan-saves --------------------------------------===//

#include "dialect/Graph/Graph.h"
#include "passes/Casts/CastPatterns.h"
#include "passes/Passes.h"
#include "passes/Placement/StoredValues.h"
#include "passes/RewriteLog.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::mp {
#define GEN_PASS_DEF_PLANSAVES
#include "passes/Passes.h.inc"
} // namespace mlir::mp

using namespace mlir;
using namespace mlir::mp;

/// True for a copy that backward can make for itself: it needs nothing but what
/// it copies, and no checkpointing policy has its say about it.
static bool isRepeatable(Operation *op) {
  return isCopy(op) && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         isMemoryEffectFree(op) && !op->hasAttr(MPDialect::kRecomputeAttrName);
}

/// True if the copy has another type, or other values, than what it is made of.
static bool converts(Operation *op) { return isa<CastOp, RoundOp>(op); }

namespace {
/// How backward comes to a value of forward: from the root through copies.
struct Path {
  Value root;
  SmallVector<Operation *> copies; ///< from the reader up to the root

  explicit Path(Value value) : root(value) {
    Operation *op = value.getDefiningOp();
    while (op && !isBackward(op) && isRepeatable(op)) {
      copies.push_back(op);
      root = op->getOperand(0);
      op = root.getDefiningOp();
    }
  }

  bool isConverted() const { return llvm::any_of(copies, converts); }

  bool narrows() const {
    return llvm::any_of(copies, [](Operation *op) {
      auto cast = dyn_cast<CastOp>(op);
      return isa<RoundOp>(op) || (cast && !cast.isExact());
    });
  }

  StringRef convertedBy() const {
    return (*llvm::find_if(copies, converts))->getName().getStringRef();
  }
};

/// What is kept for backward, and what backward reads of it.
class SavedReads {
public:
  explicit SavedReads(func::FuncOp func) : func(func) {
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (!isBackward(&op))
        continue;
      for (OpOperand &use : op.getOpOperands())
        add(use);
    }
  }

  struct Read {
    OpOperand *use;
    Path path;
  };
  ArrayRef<Read> getReads() const { return reads; }

  /// Why backward should make the copy for itself; "" if it should not.
  StringRef reasonToRepeat(const Path &path) {
    if (!path.isConverted())
      return "";
    if (auto argument = dyn_cast<BlockArgument>(path.root))
      return livesOn(argument) ? "the weight lives on anyway" : "";
    bool isKept = path.narrows() && keptAsMade.contains(path.root);
    return isKept ? "the value that it rounds is kept anyway" : "";
  }

private:
  void add(OpOperand &use) {
    Operation *producer = use.get().getDefiningOp();
    bool isOfForward = !producer || !isBackward(producer);
    if (!isOfForward || !isa_and_nonnull<FloatType>(elementTypeOf(use.get())))
      return;
    Path path(use.get());
    if (!path.isConverted())
      keptAsMade.insert(path.root);
    reads.push_back({&use, std::move(path)});
  }

  /// True for what the model owns, for as long as it trains.
  bool livesOn(BlockArgument argument) {
    auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  MPDialect::kRoleAttrName);
    return role &&
           (role.getValue() == "parameter" || role.getValue() == "buffer");
  }

  func::FuncOp func;
  SmallVector<Read> reads;
  llvm::DenseSet<Value> keptAsMade;
};

struct PlanSaves : mp::impl::PlanSavesBase<PlanSaves> {
  using PlanSavesBase::PlanSavesBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    RewriteLog log(getOperation(), getArgument());
    SavedReads saved(getOperation());
    for (const SavedReads::Read &read : saved.getReads()) {
      StringRef why = saved.reasonToRepeat(read.path);
      if (!why.empty() && !repeat(read, why, log))
        break;
    }
    log.commit();
    eraseUnread();
  }

private:
  /// Lets `read.use` read copies that backward makes. False once the rewrite
  /// limit is reached.
  bool repeat(const SavedReads::Read &read, StringRef why, RewriteLog &log) {
    Operation *reader = read.use->getOwner();
    Value known = made.lookup({read.use->get(), phaseOf(reader)});
    if (!known && !log.apply(Rule::RepeatForBackward, reader,
                             "operand " + Twine(read.use->getOperandNumber()) +
                                 " is not kept: backward repeats " +
                                 read.path.convertedBy() + ", for " + why))
      return false;
    read.use->set(known ? known : copyFor(reader, read.path));
    return true;
  }

  Value copyFor(Operation *reader, const Path &path) {
    OpBuilder builder(reader);
    Value value = path.root;
    for (Operation *copy : llvm::reverse(path.copies)) {
      unread.insert(copy);
      // Where it is stored is decided once each phase is a graph.
      if (isa<MaterializeOp>(copy)) {
        made[{copy->getResult(0), phaseOf(reader)}] = value;
        continue;
      }
      Value &known = made[{copy->getResult(0), phaseOf(reader)}];
      if (!known) {
        Operation *clone = builder.clone(*copy);
        clone->setLoc(derivedLocation(copy->getLoc()));
        clone->setOperand(0, value);
        copyPhase(reader, clone);
        known = clone->getResult(0);
      }
      value = known;
    }
    return value;
  }

  /// Readers come in the order of the block, so that the first one's copy is
  /// there for all others of its phase.
  static Attribute phaseOf(Operation *reader) {
    return reader->getAttr(MPDialect::kRecomputeAttrName);
  }

  /// Copies in forward that nothing reads now: the last ones first, which are
  /// copies of those before them.
  void eraseUnread() {
    SmallVector<Operation *> copies = unread.takeVector();
    llvm::sort(copies, [](Operation *a, Operation *b) {
      return b->isBeforeInBlock(a);
    });
    for (Operation *copy : copies)
      if (copy->use_empty())
        copy->erase();
  }

  /// By copy of forward and phase.
  llvm::DenseMap<std::pair<Value, Attribute>, Value> made;
  llvm::SetVector<Operation *> unread;
};
} // namespace
