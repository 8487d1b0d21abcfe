//===- ValueNumbers.cpp - values that are computed alike ------------------===//

#include "passes/Casts/ValueNumbers.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

static constexpr unsigned kMaxSearched = 64;

/// Discardable attributes say where an operation stands: phase and region.
static const OperationEquivalence::Flags kWhatIsComputed =
    OperationEquivalence::IgnoreLocations |
    OperationEquivalence::IgnoreDiscardableAttrs;

static bool isRepeatable(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         !(precision && precision.getOpKind() == OpKind::Random);
}

/// The operand whose elements `op` hands on; null if it computes.
static Value handedOn(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op)) {
    if (cast.isExact())
      return cast.getInput();
    // f32 to f64 to f32.
    auto inner = cast.getInput().getDefiningOp<CastOp>();
    bool goesBack = inner && inner.isExact() &&
                    isExactConversion(inner.getFrom(), cast.getTo());
    return goesBack ? inner.getInput() : Value();
  }
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || !precision.commutesWithRounding() ||
      !isMemoryEffectFree(op) || precision.getValueOperands().size() != 1)
    return {};
  return op->getOperand(precision.getValueOperands().front());
}

/// The computed value that a rounding of `value` to `format` rounds; rounding
/// to it before changes nothing.
static Value sourceOf(Value value, Type format) {
  while (Operation *op = value.getDefiningOp()) {
    Value source =
        roundedFormat(op) == format ? op->getOperand(0) : handedOn(op);
    if (!source)
      break;
    value = source;
  }
  return value;
}

void ValueNumbers::number(Operation *op) {
  if (isRepeatable(op)) {
    size_t hash = OperationEquivalence::computeHash(
        op,
        [&](Value value) {
          return llvm::hash_combine(numbers.lookup(value), value.getType());
        },
        OperationEquivalence::ignoreHashValue, kWhatIsComputed);
    auto &alike = byHash[hash];
    for (Operation *other : alike)
      if (OperationEquivalence::isEquivalentTo(
              op, other,
              [&](Value a, Value b) {
                return success(numbers.lookup(a) == numbers.lookup(b) &&
                               a.getType() == b.getType());
              },
              nullptr, kWhatIsComputed)) {
        for (auto [mine, its] :
             llvm::zip(op->getResults(), other->getResults()))
          numbers[mine] = numbers.lookup(its);
        return;
      }
    alike.push_back(op);
  }
  for (Value result : op->getResults())
    numbers[result] = next++;
}

void ValueNumbers::numberAll() {
  isNumbered = true;
  for (Value argument : func.getArguments())
    numbers[argument] = next++;
  for (Operation &op : func.getBody().front()) {
    number(&op);
    if (Type format = roundedFormat(&op)) {
      Value source = sourceOf(op.getOperand(0), format);
      roundings[{numbers.lookup(source), format}].push_back(&op);
    }
  }
  // Only numbers are asked from here on; operations may go.
  byHash.clear();
}

/// Data movement of several values, such as cat: a rounding of its result is
/// one of each of them.
static bool joinsValues(Operation *op) {
  auto precision = dyn_cast_if_present<PrecisionOpInterface>(op);
  return precision && precision.commutesWithRounding() &&
         isMemoryEffectFree(op) && precision.getValueOperands().size() > 1;
}

bool ValueNumbers::isRoundedElsewhere(Value value, Type format, Operation *by) {
  if (!isNumbered)
    numberAll();
  SmallVector<Value> pending = {value};
  for (unsigned searched = 0; !pending.empty(); ++searched) {
    Value source = sourceOf(pending.pop_back_val(), format);
    auto it = numbers.find(source);
    // Not worth a longer search, and not known: leave the rounding alone.
    if (it == numbers.end() || searched == kMaxSearched)
      return true;
    auto found = roundings.find({it->second, format});
    if (found != roundings.end() &&
        llvm::any_of(found->second, [&](Operation *other) {
          return other != by && !erased.contains(other) &&
                 !inSamePhase(other, by);
        }))
      return true;
    if (Operation *op = source.getDefiningOp(); joinsValues(op))
      for (unsigned i : cast<PrecisionOpInterface>(op).getValueOperands())
        pending.push_back(op->getOperand(i));
  }
  return false;
}

void ValueNumbers::notifyOperationErased(Operation *op) {
  // Another operation or value may come to lie where this one was.
  for (Value result : op->getResults())
    numbers.erase(result);
  if (isNumbered && isa<CastOp, RoundOp>(op))
    erased.insert(op);
  ForwardingListener::notifyOperationErased(op);
}
