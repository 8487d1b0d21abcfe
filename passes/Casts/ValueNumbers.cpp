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

/// The operands whose elements `op` moves, so that a rounding of its result is
/// one of each of them; none if it computes.
static SmallVector<Value> movedOperands(Operation *op) {
  auto precision = dyn_cast_if_present<PrecisionOpInterface>(op);
  if (!precision || !precision.commutesWithRounding() ||
      !isMemoryEffectFree(op))
    return {};
  return llvm::map_to_vector(precision.getValueOperands(),
                             [&](unsigned i) { return op->getOperand(i); });
}

/// The value that the cast `op` gives in another type; null if `op` is no cast
/// or changes values.
static Value convertedExactly(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return {};
  if (cast.isExact())
    return cast.getInput();
  // f32 to f64 to f32.
  auto inner = cast.getInput().getDefiningOp<CastOp>();
  bool goesBack = inner && inner.isExact() &&
                  isExactConversion(inner.getFrom(), cast.getTo());
  return goesBack ? inner.getInput() : Value();
}

/// The one operand whose elements `op` hands on; null if there is none.
static Value handedOn(Operation *op) {
  if (Value source = convertedExactly(op))
    return source;
  SmallVector<Value> moved = movedOperands(op);
  return moved.size() == 1 ? moved.front() : Value();
}

/// Where `value` comes from through `step` and through roundings to `format`,
/// which change nothing before another one.
static Value sourceThrough(function_ref<Value(Operation *)> step, Value value,
                           Type format) {
  while (Operation *op = value.getDefiningOp()) {
    Value source = roundedFormat(op) == format ? op->getOperand(0) : step(op);
    if (!source)
      break;
    value = source;
  }
  return value;
}

/// The computed value that a rounding of `value` to `format` rounds.
static Value sourceOf(Value value, Type format) {
  return sourceThrough(handedOn, value, format);
}

/// A cast or rounding: equal values get equal numbers, in whatever types.
bool ValueNumbers::numberConversion(Operation *op) {
  if (Value source = convertedExactly(op)) {
    numbers[op->getResult(0)] = numbers.lookup(source);
    return true;
  }
  Type format = roundedFormat(op);
  if (!format)
    return false;
  Value source = sourceThrough(convertedExactly, op->getOperand(0), format);
  auto [it, isNew] =
      rounded.try_emplace({numbers.lookup(source), format}, next);
  next += isNew;
  numbers[op->getResult(0)] = it->second;
  return true;
}

void ValueNumbers::number(Operation *op) {
  if (numberConversion(op))
    return;
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
  rounded.clear();
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
    // Of several, as in cat: a single one was followed by `sourceOf`.
    if (auto moved = movedOperands(source.getDefiningOp()); moved.size() > 1)
      pending.append(moved);
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
