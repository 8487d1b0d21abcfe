//===- ValueNumbers.cpp - values that are computed alike ------------------===//

#include "passes/Casts/ValueNumbers.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

static constexpr unsigned kMaxSearched = 64;

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

//===----------------------------------------------------------------------===//
// Formats that hold a value
//===----------------------------------------------------------------------===//

/// Narrowest first, so that the first of two is the one to compute in.
static std::array<FloatType, 4> wellKnownFormats(MLIRContext *context) {
  return {Float16Type::get(context), BFloat16Type::get(context),
          Float32Type::get(context), Float64Type::get(context)};
}

static uint8_t formatsHolding(Type element) {
  uint8_t formats = 0;
  for (auto [i, format] :
       llvm::enumerate(wellKnownFormats(element.getContext())))
    if (isExactConversion(element, format))
      formats |= 1u << i;
  return formats;
}

/// A value that is computed later is known by its type, and as what it was
/// widened from.
uint8_t ValueNumbers::formatsOf(Value value) const {
  uint8_t result = 0;
  while (true) {
    if (auto it = formats.find(value); it != formats.end())
      return result | it->second;
    result |= formatsHolding(getElementTypeOrSelf(value.getType()));
    auto cast = value.getDefiningOp<CastOp>();
    if (!cast || !cast.isExact())
      return result;
    value = cast.getInput();
  }
}

/// What the first result of `op` is held by, when the operands are known.
uint8_t ValueNumbers::formatsOfResult(Operation *op) const {
  Value result = op->getResult(0);
  uint8_t own = formatsHolding(getElementTypeOrSelf(result.getType()));
  if (Value source = convertedExactly(op))
    return own | formatsOf(source);
  if (auto round = dyn_cast<RoundOp>(op))
    return own | formatsHolding(round.getFormat());
  auto passed = dyn_cast<PrecisionOpInterface>(op);
  if (!passed || op->getNumResults() != 1 || namesDtype(op) ||
      !isRepeatable(op) ||
      !(passed.commutesWithRounding() || passed.selectsByOrder()))
    return own;
  SmallVector<unsigned> operands = passed.getValueOperands();
  uint8_t common = operands.empty() ? 0 : 0xff;
  for (unsigned i : operands)
    common &= formatsOf(op->getOperand(i));
  // Constants are looked at only where that can tell more than the type.
  uint8_t held = own;
  for (auto [i, format] : llvm::enumerate(wellKnownFormats(op->getContext())))
    if (((common & ~own) >> i & 1) && hasExactFillers(op, format))
      held |= 1u << i;
  return held;
}

/// The value that the cast `op` gives in another type; null if `op` is no cast
/// or changes values.
Value ValueNumbers::convertedExactly(Operation *op) const {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return {};
  if (cast.isExact())
    return cast.getInput();
  uint8_t formats = formatsOf(cast.getInput());
  for (auto [i, format] : llvm::enumerate(wellKnownFormats(op->getContext())))
    if ((formats >> i & 1) && format == cast.getTo())
      return cast.getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// Where a value comes from
//===----------------------------------------------------------------------===//

/// The one operand whose elements `op` hands on; null if there is none.
Value ValueNumbers::handedOn(Operation *op) const {
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
Value ValueNumbers::sourceOf(Value value, Type format) const {
  return sourceThrough([&](Operation *op) { return handedOn(op); }, value,
                       format);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// A cast or rounding: equal values get equal numbers, in whatever types.
bool ValueNumbers::numberConversion(Operation *op) {
  if (Value source = convertedExactly(op)) {
    numbers[op->getResult(0)] = numbers.lookup(source);
    return true;
  }
  Type format = roundedFormat(op);
  if (!format)
    return false;
  Value source =
      sourceThrough([&](Operation *by) { return convertedExactly(by); },
                    op->getOperand(0), format);
  auto [it, isNew] =
      rounded.try_emplace({numbers.lookup(source), format}, next);
  next += isNew;
  numbers[op->getResult(0)] = it->second;
  return true;
}

/// True for an operator whose one result is made of elements of its operands.
static bool handsOnElements(Operation *op) {
  auto passed = dyn_cast<PrecisionOpInterface>(op);
  return passed && op->getNumResults() == 1 && !namesDtype(op) &&
         (passed.commutesWithRounding() || passed.selectsByOrder()) &&
         !passed.getValueOperands().empty();
}

/// The type of the first result, where that makes a difference.
Type ValueNumbers::typeOf(Operation *op) const {
  Value result = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type || !isa<FloatType>(type.getElementType()) || !handsOnElements(op))
    return result.getType();
  // It does the same in each format that holds the elements.
  uint8_t held = formatsOf(result);
  for (auto [i, format] : llvm::enumerate(wellKnownFormats(op->getContext())))
    if (held >> i & 1)
      return type.clone(format);
  return type;
}

size_t ValueNumbers::hashOf(Operation *op) const {
  size_t hash = llvm::hash_combine(op->getName(), op->hashProperties(),
                                   op->getNumResults());
  for (Value operand : op->getOperands())
    hash = llvm::hash_combine(hash, numbers.lookup(operand));
  return hash;
}

/// True if both compute the same values from operands of equal numbers.
bool ValueNumbers::areAlike(Operation *a, Operation *b) const {
  if (a->getName() != b->getName() ||
      a->getNumOperands() != b->getNumOperands() ||
      !a->getName().compareOpProperties(a->getPropertiesStorage(),
                                        b->getPropertiesStorage()))
    return false;
  bool handOn = handsOnElements(a) && handsOnElements(b);
  for (auto [x, y] : llvm::zip(a->getOperands(), b->getOperands()))
    if (numbers.lookup(x) != numbers.lookup(y) ||
        (!handOn && x.getType() != y.getType()))
      return false;
  return handOn ? typeOf(a) == typeOf(b)
                : a->getResultTypes() == b->getResultTypes();
}

bool ValueNumbers::numberLikeAnother(Operation *op) {
  if (!isRepeatable(op) || op->getNumResults() == 0)
    return false;
  auto &alike = byHash[hashOf(op) >> 2]; // never a key that DenseMap reserves
  for (Operation *other : alike)
    if (areAlike(op, other)) {
      for (auto [mine, its] : llvm::zip(op->getResults(), other->getResults()))
        numbers[mine] = numbers.lookup(its);
      return true;
    }
  alike.push_back(op);
  return false;
}

void ValueNumbers::number(Operation *op) {
  if (op->getNumResults())
    formats[op->getResult(0)] = formatsOfResult(op);
  if (numberConversion(op) || numberLikeAnother(op))
    return;
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
  for (Value result : op->getResults()) {
    numbers.erase(result);
    formats.erase(result);
  }
  if (isNumbered && isa<CastOp, RoundOp>(op))
    erased.insert(op);
  ForwardingListener::notifyOperationErased(op);
}
