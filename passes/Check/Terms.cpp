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

/// The formats that a rewrite can meet, one bit each.
static SmallVector<FloatType, 4> wellKnownFormats(MLIRContext *context) {
  return {Float16Type::get(context), BFloat16Type::get(context),
          Float32Type::get(context), Float64Type::get(context)};
}

bool TermTable::isHeldBy(TermId id, Type element) const {
  if (isExactConversion(elementType(id), element))
    return true;
  for (auto [i, format] :
       llvm::enumerate(wellKnownFormats(element.getContext())))
    if (format == element)
      return terms[id].formats >> i & 1;
  return false;
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

TermId TermTable::apply(const Term &term, ArrayRef<TermId> args) {
  Type own = getElementTypeOrSelf(term.type);
  FloatType narrow = narrowestFormat(term, args);
  if (term.transparency != Transparency::Exact || !narrow || narrow == own)
    return applyIn(term, own, args);
  SmallVector<TermId, 4> narrowed;
  for (TermId arg : args)
    narrowed.push_back(elementType(arg) == own ? convert(arg, narrow, term.op)
                                               : arg);
  return convert(applyIn(term, narrow, narrowed), own, term.op);
}

TermId TermTable::dropped(TermId id, Type element, Operation *op) {
  if (isHeldBy(id, element))
    return convert(id, element, op); // it changes no value anyway
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

uint8_t TermTable::formatsHolding(Type type) {
  auto [it, isNew] = typeFormats.try_emplace(type, 0);
  if (isNew)
    for (auto [i, format] :
         llvm::enumerate(wellKnownFormats(type.getContext())))
      if (isExactConversion(type, format))
        it->second |= 1u << i;
  return it->second;
}

uint8_t TermTable::formatsOfFillers(Attribute attrs) const {
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
  return formats | commonFormats(term, term.args);
}

/// The formats that hold each value of the operator's result, which is one of
/// an operand, its negative, or a constant.
uint8_t TermTable::commonFormats(const Term &term,
                                 ArrayRef<TermId> args) const {
  Type own = getElementTypeOrSelf(term.type);
  uint8_t common = formatsOfFillers(term.attrs);
  for (TermId arg : args)
    if (elementType(arg) == own)
      common &= terms[arg].formats;
  return common;
}

/// The first format in which the operator could work on the same values; null
/// for one that computes new values.
FloatType TermTable::narrowestFormat(const Term &term,
                                     ArrayRef<TermId> args) const {
  if (term.transparency == Transparency::None)
    return {};
  Type own = getElementTypeOrSelf(term.type);
  uint8_t common = commonFormats(term, args);
  for (auto [i, format] : llvm::enumerate(wellKnownFormats(own.getContext())))
    if ((common >> i & 1) && isExactConversion(format, own))
      return format;
  return {};
}

bool TermTable::passesThrough(const Term &term, Type element) const {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(term.type));
  auto to = dyn_cast<FloatType>(element);
  if (term.transparency != Transparency::All || !from || !to)
    return false;
  return !term.attrs ||
         (fillersAreExact(term.attrs, from) && fillersAreExact(term.attrs, to));
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
    bool widensBack = isHeldBy(term.args[0], request.element);
    return need(term.args[0], widensBack ? request.element : own);
  }
  if (passesThrough(term, request.element)) {
    for (TermId arg : term.args)
      if (elementType(arg) == own)
        need(arg, request.element);
    return;
  }
  // A constant is in the way: the conversion stays on the narrowest form of the
  // operator, which is the same whatever exact conversions came before.
  if (FloatType narrow = narrowestFormat(term, term.args))
    need(request.term, narrow);
}

/// The same operator on floats of another type.
TermId TermTable::applyIn(Term term, Type element, ArrayRef<TermId> args) {
  Type own = getElementTypeOrSelf(term.type);
  auto convertType = [&](Type type) -> Type {
    auto tensor = dyn_cast<TensorType>(type);
    return tensor && tensor.getElementType() == own ? tensor.clone(element)
                                                    : type;
  };
  if (term.results && element != own) {
    SmallVector<Attribute> results;
    for (Attribute type : cast<ArrayAttr>(term.results))
      results.push_back(
          TypeAttr::get(convertType(cast<TypeAttr>(type).getValue())));
    term.results = ArrayAttr::get(element.getContext(), results);
  }
  if (element != own)
    term.type = convertType(term.type);
  term.kind = TermKind::Apply;
  term.args = args;
  return intern(term);
}

/// Everything that `collectNeeded` names is known by now.
TermId TermTable::answer(Request request, Operation *op) {
  const Term &term = terms[request.term];
  Type own = getElementTypeOrSelf(term.type);
  if (term.kind == TermKind::Convert &&
      mergesWith(elementType(term.args[0]), own, request.element))
    return find(term.args[0], request.element);
  if (term.kind == TermKind::Dropped && isHeldBy(term.args[0], request.element))
    return find(term.args[0], request.element);
  if (passesThrough(term, request.element)) {
    SmallVector<TermId, 4> args;
    for (TermId arg : term.args)
      args.push_back(elementType(arg) == own ? find(arg, request.element)
                                             : arg);
    return applyIn(term, request.element, args);
  }
  Term conversion;
  conversion.kind = TermKind::Convert;
  conversion.type = cast<TensorType>(term.type).clone(request.element);
  TermId source = request.term;
  if (term.kind == TermKind::Dropped)
    source = find(term.args[0], own); // a rounding after all
  else if (FloatType narrow = narrowestFormat(term, term.args))
    source = find(request.term, narrow);
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
