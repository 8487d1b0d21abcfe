//===- Terms.cpp - normal forms of values ---------------------------------===//

#include "passes/Check/Terms.h"
#include "dialect/IR/MPOps.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

static constexpr TermId kNone = ~TermId(0);

Type TermTable::elementType(TermId id) const {
  return getElementTypeOrSelf(terms[id].type);
}

//===----------------------------------------------------------------------===//
// Hash-consing
//===----------------------------------------------------------------------===//

static uint64_t hashOf(const Term &term) {
  size_t hash = llvm::hash_combine(
      uint8_t(term.kind), term.index, term.serial, term.type, term.name,
      term.attrs, term.results,
      llvm::hash_combine_range(term.args.begin(), term.args.end()));
  return hash >> 2; // never a key that DenseMap keeps for itself
}

static bool isSame(const Term &a, const Term &b) {
  return a.kind == b.kind && a.index == b.index && a.serial == b.serial &&
         a.type == b.type && a.name == b.name && a.attrs == b.attrs &&
         a.results == b.results && a.args == b.args;
}

TermId TermTable::intern(Term term) {
  SmallVector<TermId, 1> &bucket = byHash[hashOf(term)];
  for (TermId id : bucket)
    if (isSame(terms[id], term))
      return id;
  argStorage.emplace_back(term.args.begin(), term.args.end());
  term.args = argStorage.back();
  term.formats = formatsOf(term);
  bucket.push_back(terms.size());
  terms.push_back(term);
  return bucket.back();
}

TermId TermTable::input(unsigned index, Type type) {
  Term term;
  term.kind = TermKind::Input;
  term.index = index;
  term.type = type;
  return intern(term);
}

TermId TermTable::apply(Term term, ArrayRef<TermId> args) {
  term.kind = TermKind::Apply;
  term.args = args;
  return intern(term);
}

TermId TermTable::dropped(TermId id, Type element, Operation *op) {
  Term term;
  term.kind = TermKind::Dropped;
  term.type = cast<TensorType>(terms[id].type).clone(element);
  term.args = id;
  term.op = op;
  return intern(term);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

static bool isValueOf(llvm::APFloat value, FloatType type) {
  bool losesInfo = false;
  value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return !losesInfo;
}

/// True if no constant that the operator may write into its result is rounded
/// in `type`. An integer counts only where an operator takes a number.
static bool fillersAreExact(Attribute attrs, FloatType type) {
  auto args = dyn_cast_if_present<DictionaryAttr>(attrs);
  if (!args)
    return true;
  for (NamedAttribute arg : args) {
    bool exact = true;
    arg.getValue().walk(
        [&](FloatAttr filler) { exact &= isValueOf(filler.getValue(), type); });
    StringRef name = arg.getName();
    bool isNumber = name == "value" || name == "fill_value" || name == "self" ||
                    name == "other";
    auto integer = dyn_cast<IntegerAttr>(arg.getValue());
    if (isNumber && integer) {
      llvm::APFloat wide(llvm::APFloat::IEEEquad());
      wide.convertFromAPInt(integer.getValue(), /*IsSigned=*/true,
                            llvm::APFloat::rmNearestTiesToEven);
      exact &= isValueOf(wide, type);
    }
    // A number that is only known at run time.
    if (isNumber && isa<StringAttr>(arg.getValue()))
      exact = false;
    if (!exact)
      return false;
  }
  return true;
}

/// The formats that a rewrite can meet, one bit each.
static SmallVector<FloatType, 4> wellKnownFormats(MLIRContext *context) {
  return {Float16Type::get(context), BFloat16Type::get(context),
          Float32Type::get(context), Float64Type::get(context)};
}

uint8_t TermTable::formatsHolding(Type type) {
  auto [it, isNew] = typeFormats.try_emplace(type, 0);
  if (isNew)
    for (auto [i, format] :
         llvm::enumerate(wellKnownFormats(type.getContext())))
      if (isExactConversion(type, format))
        it->second |= 1u << i;
  return it->second;
}

uint8_t TermTable::formatsOfFillers(Attribute attrs) {
  if (!attrs)
    return 0xff;
  auto [it, isNew] = fillerFormats.try_emplace(attrs, 0);
  if (isNew)
    for (auto [i, format] :
         llvm::enumerate(wellKnownFormats(attrs.getContext())))
      if (fillersAreExact(attrs, format))
        it->second |= 1u << i;
  return it->second;
}

uint8_t TermTable::formatsOf(const Term &term) {
  Type own = getElementTypeOrSelf(term.type);
  uint8_t formats = formatsHolding(own);
  if (term.kind == TermKind::Convert &&
      isExactConversion(elementType(term.args[0]), own))
    return formats | terms[term.args[0]].formats;
  if (term.transparency == Transparency::None)
    return formats;
  // Each element is one of an operand, its negative, or a constant.
  uint8_t common = 0xff;
  for (TermId arg : term.args)
    if (elementType(arg) == own)
      common &= terms[arg].formats;
  return formats | (common & formatsOfFillers(term.attrs));
}

bool TermTable::passesThrough(const Term &term, Type element) const {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(term.type));
  auto to = dyn_cast<FloatType>(element);
  if (term.transparency == Transparency::None || !from || !to)
    return false;
  if (term.attrs &&
      (!fillersAreExact(term.attrs, from) || !fillersAreExact(term.attrs, to)))
    return false;
  if (term.transparency == Transparency::All || isExactConversion(from, to))
    return true;
  for (auto [i, format] : llvm::enumerate(wellKnownFormats(to.getContext())))
    if (format == to)
      return term.formats >> i & 1;
  return false;
}

TermId TermTable::find(TermId term, Type element) const {
  if (elementType(term) == element)
    return term;
  auto it = converted.find({term, element});
  return it == converted.end() ? kNone : it->second;
}

/// True if a conversion to `element` may start at the argument of the
/// conversion `term`: from there to `term` no value changes.
static bool mergesWith(Type source, Type middle, Type element) {
  if (!isExactConversion(source, middle))
    return false;
  // An integer that goes to another integer type by way of a float wraps at
  // another place than directly.
  return source == element || isa<FloatType>(element);
}

void TermTable::collectNeeded(Request request,
                              SmallVectorImpl<Request> &needed) const {
  const Term &term = terms[request.term];
  auto need = [&](TermId arg, Type element) {
    if (find(arg, element) == kNone)
      needed.push_back({arg, element});
  };
  Type own = getElementTypeOrSelf(term.type);
  if (term.kind == TermKind::Convert &&
      mergesWith(elementType(term.args[0]), own, request.element))
    return need(term.args[0], request.element);
  if (term.kind == TermKind::Dropped) {
    bool widensBack =
        isExactConversion(elementType(term.args[0]), request.element);
    return need(term.args[0], widensBack ? request.element : own);
  }
  if (passesThrough(term, request.element))
    for (TermId arg : term.args)
      if (elementType(arg) == own)
        need(arg, request.element);
}

TermId TermTable::applyConverted(TermId id, Type element, Operation *op) {
  Term term = terms[id];
  Type own = getElementTypeOrSelf(term.type);
  SmallVector<TermId, 4> args;
  for (TermId arg : term.args)
    args.push_back(elementType(arg) == own ? find(arg, element) : arg);
  auto convertType = [&](Type type) -> Type {
    auto tensor = dyn_cast<TensorType>(type);
    return tensor && tensor.getElementType() == own ? tensor.clone(element)
                                                    : type;
  };
  if (term.results) {
    SmallVector<Attribute> results;
    for (Attribute type : cast<ArrayAttr>(term.results))
      results.push_back(
          TypeAttr::get(convertType(cast<TypeAttr>(type).getValue())));
    term.results = ArrayAttr::get(element.getContext(), results);
  }
  term.type = convertType(term.type);
  term.op = op;
  return apply(term, args);
}

/// Everything that `collectNeeded` names is known by now.
TermId TermTable::answer(Request request, Operation *op) {
  const Term &term = terms[request.term];
  Type own = getElementTypeOrSelf(term.type);
  if (term.kind == TermKind::Convert &&
      mergesWith(elementType(term.args[0]), own, request.element))
    return find(term.args[0], request.element);
  if (term.kind == TermKind::Dropped &&
      isExactConversion(elementType(term.args[0]), request.element))
    return find(term.args[0], request.element);
  if (passesThrough(term, request.element))
    return applyConverted(request.term, request.element, op);
  Term conversion;
  conversion.kind = TermKind::Convert;
  conversion.type = cast<TensorType>(term.type).clone(request.element);
  TermId source = term.kind == TermKind::Dropped
                      ? find(term.args[0], own) // a rounding after all
                      : request.term;
  conversion.args = source;
  conversion.op = op;
  return intern(conversion);
}

// A chain of movements can be as long as the graph: a stack of requests and not
// of calls.
TermId TermTable::convert(TermId term, Type element, Operation *op) {
  SmallVector<Request> stack = {{term, element}};
  SmallVector<Request> needed;
  while (!stack.empty()) {
    Request request = stack.back();
    if (isExhausted() || find(request.term, request.element) != kNone) {
      stack.pop_back();
      continue;
    }
    needed.clear();
    collectNeeded(request, needed);
    if (!needed.empty()) {
      stack.append(needed.begin(), needed.end());
      continue;
    }
    stack.pop_back();
    converted[{request.term, request.element}] = answer(request, op);
  }
  TermId result = find(term, element);
  return result == kNone ? term : result; // exhausted: the caller gives up
}
