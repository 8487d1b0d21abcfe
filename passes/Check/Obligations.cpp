//===- Obligations.cpp - conditions of the contract precise ---------------===//

#include "passes/Check/Obligations.h"
#include "dialect/IR/MPOps.h"
#include "passes/Check/PinnedGraph.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

//===----------------------------------------------------------------------===//
// Readers of a rounding
//===----------------------------------------------------------------------===//

namespace {
/// For roundings of `wide` values to `narrow`: which values are only widened
/// again, and which are observed. One sweep from the last operation on.
class Readers {
public:
  Readers(func::FuncOp func, const llvm::DenseSet<Operation *> &live,
          FloatType narrow, FloatType wide)
      : narrow(narrow), wide(wide) {
    for (Operation &op : llvm::reverse(func.getBody().front()))
      if (live.contains(&op))
        visit(&op);
  }

  /// A live reader keeps the rounded value narrow; null if none does.
  Operation *narrowReader(Value value) const {
    return narrowReaders.lookup(value);
  }
  /// A live reader can tell a rounded value from another; null if none can.
  Operation *observer(Value value) const { return observers.lookup(value); }

private:
  void visit(Operation *op);
  Operation *narrowReaderThrough(OpOperand &use) const;
  Operation *observerThrough(OpOperand &use) const;

  FloatType narrow, wide;
  llvm::DenseMap<Value, Operation *> narrowReaders, observers;
};
} // namespace

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

static Operation *firstOf(Operation *op,
                          const llvm::DenseMap<Value, Operation *> &readers) {
  for (Value result : op->getResults())
    if (Operation *reader = readers.lookup(result))
      return reader;
  return nullptr;
}

void Readers::visit(Operation *op) {
  for (OpOperand &use : op->getOpOperands()) {
    if (Operation *reader = narrowReaderThrough(use))
      narrowReaders.try_emplace(use.get(), reader);
    if (Operation *reader = observerThrough(use))
      observers.try_emplace(use.get(), reader);
  }
}

Operation *Readers::narrowReaderThrough(OpOperand &use) const {
  Operation *op = use.getOwner();
  Type to =
      isConversion(op) ? elementOf(op->getResult(0)) : Type(promotedType(use));
  if (to && to != narrow)
    return isExactConversion(narrow, to) && isExactConversion(wide, to)
               ? nullptr
               : op;
  if (to || transparencyOf(op) == Transparency::All)
    return firstOf(op, narrowReaders);
  return op;
}

/// Rounding again to the same format hides whether it was rounded before.
Operation *Readers::observerThrough(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (isConversion(op)) {
    if (!isa<FloatType>(elementOf(op->getResult(0))))
      return op;
    return elementOf(op->getResult(0)) == narrow ? nullptr
                                                 : firstOf(op, observers);
  }
  if (auto round = dyn_cast<RoundOp>(op))
    return round.getFormat() == narrow ? nullptr : firstOf(op, observers);
  auto reader = dyn_cast<PrecisionOpInterface>(op);
  if (!reader)
    return nullptr;
  if (reader.observesRounding(use.getOperandNumber()))
    return op;
  bool passesValues = reader.commutesWithRounding() || reader.selectsByOrder();
  return passesValues ? firstOf(op, observers) : nullptr;
}

/// Operations whose results matter: the rest is dead and decides nothing.
static llvm::DenseSet<Operation *> liveOperations(func::FuncOp func) {
  llvm::DenseSet<Operation *> live;
  for (Operation &op : llvm::reverse(func.getBody().front())) {
    bool isLive = op.hasTrait<OpTrait::IsTerminator>() || isOrdered(&op) ||
                  llvm::any_of(op.getUsers(), [&](Operation *user) {
                    return live.contains(user);
                  });
    if (isLive)
      live.insert(&op);
  }
  return live;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

namespace {
class Verifier {
public:
  Verifier(func::FuncOp before, func::FuncOp after, const NormalForm &form,
           const TermTable &table, Allowances &allowances)
      : before(before), after(after), form(form), table(table),
        allowances(allowances), live(liveOperations(before)) {}

  LogicalResult verify(ArrayRef<Record> records, Merged fate);

private:
  LogicalResult claimWideResults(ArrayRef<Record> records);
  void indexRoundings();
  LogicalResult claim(const Record &record, size_t position);
  LogicalResult claimDropped(const Record &record, size_t position);
  void adoptEqualRoundings();
  LogicalResult verifyDropped(Operation *op);
  LogicalResult verifyEqualRoundings(Operation *op);
  InFlightDiagnostic emitIllegal(Operation *op);
  std::optional<std::pair<FloatType, FloatType>> roundingOf(Operation *op);
  Operation *roundedBefore(Operation *op);
  const Readers &readersOf(FloatType narrow, FloatType wide);

  func::FuncOp before, after;
  const NormalForm &form;
  const TermTable &table;
  Allowances &allowances;
  llvm::DenseSet<Operation *> live;
  /// Roundings of `before` by node, and by the term that they compute.
  llvm::DenseMap<int64_t, SmallVector<Operation *, 1>> byNode;
  llvm::DenseMap<TermId, SmallVector<Operation *, 2>> byTerm;
  /// Nodes that a record says were merged into an equal value, and which
  /// record.
  llvm::DenseMap<int64_t, size_t> merged;
  /// Roundings that a record drops, and which record.
  llvm::DenseMap<Operation *, size_t> claimed;
  llvm::DenseMap<Operation *, int64_t> nodes;
  llvm::DenseSet<int64_t> known;
  std::map<std::pair<const void *, const void *>, std::unique_ptr<Readers>>
      readers;
};
} // namespace

/// The format that `op` rounds floats to and the type that it reads; none for
/// an operation that rounds no float.
std::optional<std::pair<FloatType, FloatType>>
Verifier::roundingOf(Operation *op) {
  FloatType narrow, wide;
  if (allowances.wideResults.contains(op)) {
    narrow = dyn_cast<FloatType>(elementOf(op->getResult(0)));
    wide = Float32Type::get(op->getContext());
  } else if (auto round = dyn_cast<RoundOp>(op)) {
    narrow = cast<FloatType>(round.getFormat());
    wide = dyn_cast<FloatType>(elementOf(round.getInput()));
  } else if (isConversion(op)) {
    narrow = dyn_cast<FloatType>(elementOf(op->getResult(0)));
    wide = dyn_cast<FloatType>(elementOf(op->getOperand(0)));
  }
  if (!narrow || !wide || isExactConversion(wide, narrow))
    return std::nullopt;
  return std::pair(narrow, wide);
}

/// Who asked; nobody known counts as the user.
static CastOrigin originOf(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return cast.getOrigin();
  if (auto round = dyn_cast<RoundOp>(op))
    return round.getOrigin();
  auto origin = op->getAttrOfType<CastOriginAttr>("mp.origin");
  return origin ? origin.getValue() : CastOrigin::user;
}

/// True for a product of halves of one type that rounds its result to it.
static bool roundsProduct(Operation *op) {
  if (!isMatrixProduct(op) || op->getNumResults() != 1)
    return false;
  Type half = elementOf(op->getResult(0));
  return isHalf(half) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return elementOf(operand) == half;
         });
}

LogicalResult Verifier::claimWideResults(ArrayRef<Record> records) {
  LogicalResult result = success();
  OperatorsByNode operators(before);
  for (const Record &record : records) {
    if (record.rule != "wide-result")
      continue;
    Operation *op = operators.lookup(record.node);
    if (op && roundsProduct(op)) {
      allowances.wideResults.insert(op);
      // On either side, wherever operands are widened.
      allowances.halfMatmuls.insert(record.node);
    } else
      result = after.emitError("record of wide-result for node ")
               << record.node << " names no product of halves of @"
               << before.getName();
  }
  return result;
}

void Verifier::indexRoundings() {
  for (auto [position, op] :
       llvm::enumerate(before.getBody().front().without_terminator())) {
    int64_t node = nodeNumber(&op, position);
    known.insert(node);
    if (!roundingOf(&op))
      continue;
    nodes[&op] = node;
    byNode[node].push_back(&op);
    byTerm[form.terms.lookup(op.getResult(0))].push_back(&op);
  }
}

InFlightDiagnostic Verifier::emitIllegal(Operation *op) {
  InFlightDiagnostic diag = op->emitError("illegal drop of a rounding: ");
  diag.attachNote(after.getLoc()) << "dropped in @" << after.getName();
  return diag;
}

const Readers &Verifier::readersOf(FloatType narrow, FloatType wide) {
  auto &slot =
      readers[{narrow.getAsOpaquePointer(), wide.getAsOpaquePointer()}];
  if (!slot)
    slot = std::make_unique<Readers>(before, live, narrow, wide);
  return *slot;
}

LogicalResult Verifier::verifyDropped(Operation *op) {
  auto [narrow, wide] = *roundingOf(op);
  // A reader may widen to less than the type that was narrowed, if the value
  // came from there: f32 to f64 to f16 to f32.
  TermId input = form.terms.lookup(op->getOperand(0));
  auto f32 = Float32Type::get(op->getContext());
  if (isExactConversion(f32, wide) && table.isHeldBy(input, f32))
    wide = f32;
  // What a product rounds nobody asked for.
  bool isProduct = allowances.wideResults.contains(op);
  CastOrigin origin = isProduct ? CastOrigin::autocast : originOf(op);
  if (origin == CastOrigin::user || origin == CastOrigin::mpopt)
    return emitIllegal(op) << "its origin is " << stringifyCastOrigin(origin);
  const Readers &readers = readersOf(narrow, wide);
  Value value = op->getResult(0);
  if (Operation *reader = readers.observer(value))
    return emitIllegal(op) << signatureOf(reader).first << " observes it";
  // mp.round keeps the wide type, so that nobody reads a half.
  if (Operation *reader = readers.narrowReader(value);
      reader && !isa<RoundOp>(op))
    return emitIllegal(op) << signatureOf(reader).first << " reads it as "
                           << narrow;
  return success();
}

/// The rounding whose value `op` only gives back, through exact conversions;
/// null if it rounds by itself.
Operation *Verifier::roundedBefore(Operation *op) {
  if (!isConversion(op))
    return nullptr;
  FloatType narrow = roundingOf(op)->first;
  Operation *source = op->getOperand(0).getDefiningOp();
  while (source &&
         (isConversion(source) || allowances.wideResults.contains(source))) {
    if (auto rounding = roundingOf(source))
      return rounding->first == narrow ? source : nullptr;
    if (!isa<FloatType>(elementOf(source->getOperand(0))) ||
        !isa<FloatType>(elementOf(source->getResult(0))))
      return nullptr;
    source = source->getOperand(0).getDefiningOp();
  }
  return nullptr;
}

/// The same value, rounded equally elsewhere and not dropped there, would
/// differ: forward from backward, or one run of a checkpoint from the other.
LogicalResult Verifier::verifyEqualRoundings(Operation *op) {
  for (Operation *other : byTerm[form.terms.lookup(op->getResult(0))]) {
    if (other == op || !live.contains(other) ||
        allowances.dropped.contains(other) || isa<RoundOp>(other))
      continue;
    // Then it is the earlier one that stays, and that is looked at as well.
    Operation *earlier = roundedBefore(other);
    if (earlier && !allowances.dropped.contains(earlier))
      continue;
    bool isRepeated = isBackward(op) != isBackward(other) ||
                      op->getAttr(MPDialect::kRecomputeAttrName) !=
                          other->getAttr(MPDialect::kRecomputeAttrName);
    if (isRepeated || op->getOperand(0) == other->getOperand(0))
      return emitIllegal(op)
             << "node " << nodes[other] << " rounds the same value and stays";
  }
  return success();
}

/// A record may name a conversion that has taken over equal ones before it was
/// dropped; those are dropped with it if they may be. One that was merged later
/// has met a rounding that stays.
void Verifier::adoptEqualRoundings() {
  for (auto [op, position] : claimed)
    for (Operation *other : byTerm[form.terms.lookup(op->getResult(0))]) {
      auto merge = merged.find(nodes[other]);
      if (merge == merged.end() || merge->second > position ||
          isa<RoundOp>(other))
        continue;
      ScopedDiagnosticHandler quiet(before.getContext(),
                                    [](Diagnostic &) { return success(); });
      if (succeeded(verifyDropped(other)) &&
          allowances.dropped.insert(other).second)
        allowances.isAmbiguous = true;
    }
}

LogicalResult Verifier::claimDropped(const Record &record, size_t position) {
  SmallVector<Operation *, 1> &ops = byNode[record.node];
  if (ops.empty())
    return after.emitError("record drops the rounding of node ")
           << record.node << ", which rounds nothing in @" << before.getName();
  allowances.dropped.insert(ops.begin(), ops.end());
  for (Operation *op : ops)
    claimed.try_emplace(op, position);
  return success();
}

LogicalResult Verifier::claim(const Record &record, size_t position) {
  if (record.rule == "share-equal-casts" ||
      record.rule == "fold-exact-round-trip")
    merged.try_emplace(record.node, position);
  if (!known.contains(record.node))
    return after.emitError("record of ")
           << record.rule << " names node " << record.node << ", which @"
           << before.getName() << " does not have";
  if (record.contract != contractFor(record.rule))
    return after.emitError("record of ")
           << record.rule << " for node " << record.node
           << " claims the contract '" << record.contract << "'";
  if (record.rule == "drop-autocast-rounding")
    return claimDropped(record, position);
  if (record.rule == "matmul-half-operands")
    allowances.halfMatmuls.insert(record.node);
  return success();
}

LogicalResult Verifier::verify(ArrayRef<Record> records, Merged fate) {
  LogicalResult result = claimWideResults(records);
  indexRoundings();
  for (auto [position, record] : llvm::enumerate(records))
    if (failed(claim(record, position)))
      result = failure();
  SmallVector<Operation *> inOrder = llvm::to_vector(claimed.keys());
  llvm::sort(inOrder,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  if (fate == Merged::WithDropped)
    adoptEqualRoundings();
  for (Operation *op : inOrder)
    if (failed(verifyDropped(op)) || failed(verifyEqualRoundings(op)))
      result = failure();
  return result;
}

LogicalResult
mlir::mp::check::verifyRecord(func::FuncOp before, func::FuncOp after,
                              ArrayRef<Record> records, const NormalForm &form,
                              const TermTable &table, Merged merged,
                              Allowances &allowances) {
  return Verifier(before, after, form, table, allowances)
      .verify(records, merged);
}
