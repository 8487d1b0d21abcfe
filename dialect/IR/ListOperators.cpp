//===- ListOperators.cpp - operators over lists of tensors ----------------===//

#include "dialect/IR/ListOperators.h"
#include "dialect/IR/Arguments.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
struct ForeachRow {
  StringRef list;   ///< "aten._foreach_add.List"
  StringRef single; ///< "aten.add.Tensor"
  /// "self=self other=other": names of `list`'s parameters and of `single`'s.
  StringRef parameters;
};
} // namespace

static const ForeachRow kRows[] = {
#define MP_FOREACH_ROW(LIST, SINGLE, PARAMETERS) {LIST, SINGLE, PARAMETERS},
#include "dialect/IR/ForeachOps.def"
};

static const ForeachRow *lookupRow(StringRef callee) {
  static const llvm::StringMap<const ForeachRow *> index = [] {
    llvm::StringMap<const ForeachRow *> map;
    for (const ForeachRow &row : kRows)
      map[row.list] = &row;
    return map;
  }();
  return index.lookup(callee);
}

bool mlir::mp::isUnscaling(AtenOp op) {
  return stripOverload(op.getCallee()) ==
         "aten._amp_foreach_non_finite_check_and_unscale";
}

bool mlir::mp::isListOperator(AtenOp op) {
  return isUnscaling(op) || lookupRow(op.getCallee());
}

//===----------------------------------------------------------------------===//
// Foreach
//===----------------------------------------------------------------------===//

namespace {
/// Element `index` of a loop: operands and other arguments of its operator.
struct Element {
  SmallVector<Value> operands;
  NamedAttrList args;

  /// Adds one parameter; false if it does not fit.
  bool add(AtenOp list, unsigned index, StringRef name, StringRef newName);
  /// Adds all parameters of a row; false if one does not fit.
  bool addAll(AtenOp list, unsigned index, const ForeachRow &row);
};
} // namespace

bool Element::add(AtenOp list, unsigned index, StringRef name,
                  StringRef newName) {
  Attribute attr = list.getArgsAttr().get(name);
  if (auto array = dyn_cast_if_present<ArrayAttr>(attr)) {
    if (array.size() != list->getNumResults())
      return false;
    attr = array[index];
  }
  if (!attr || isa<UnitAttr>(attr))
    return true; // left out, or None: the default
  if (Value operand = operandOf(list, attr)) {
    operands.push_back(operand);
    return args.empty(); // tensors come before other arguments
  }
  if (isa<StringAttr>(attr))
    return false;
  args.append(newName, attr);
  return true;
}

bool Element::addAll(AtenOp list, unsigned index, const ForeachRow &row) {
  SmallVector<StringRef> pairs;
  row.parameters.split(pairs, ' ');
  return llvm::all_of(pairs,
                      [&](StringRef pair) {
                        auto [name, newName] = pair.split('=');
                        return add(list, index, name, newName);
                      }) &&
         !operands.empty();
}

static StringRef whyNotForeach(AtenOp op, const ForeachRow &row) {
  if (!op.getArgsAttr())
    return "it has no lists";
  for (unsigned i = 0, end = op->getNumResults(); i != end; ++i)
    if (!Element().addAll(op, i, row))
      return "its arguments are no lists of one length and constants";
  return "";
}

static SmallVector<Value> expandForeach(AtenOp op, const ForeachRow &row,
                                        OpBuilder &builder, Location loc) {
  SmallVector<Value> results;
  for (OpResult result : op->getResults()) {
    Element element;
    if (!element.addAll(op, result.getResultNumber(), row))
      llvm_unreachable("asked before");
    auto args = element.args.empty()
                    ? DictionaryAttr()
                    : element.args.getDictionary(op.getContext());
    auto single = AtenOp::create(builder, loc, result.getType(), row.single,
                                 element.operands, args, /*effects=*/false);
    single->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    single->removeDiscardableAttr(MPDialect::kPinAttrName);
    results.push_back(single->getResult(0));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Check and unscale
//===----------------------------------------------------------------------===//

/// (gradients..., found_inf, inverse scale) to (gradients..., found_inf).
static StringRef whyNotUnscaling(AtenOp op) {
  unsigned results = op->getNumResults();
  if (results < 2 || op->getNumOperands() != results + 1)
    return "it has other operands than gradients, a flag and a scale";
  for (unsigned i = 0; i != results; ++i) {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(i).getType());
    if (!type || type != op->getResult(i).getType() ||
        !isa<FloatType>(type.getElementType()))
      return "a gradient is no float tensor of its own type";
  }
  return "";
}

namespace {
/// Checks and unscales one gradient after the other.
class Unscaling {
public:
  Unscaling(AtenOp op, OpBuilder &builder, Location loc)
      : op(op), builder(builder), loc(loc) {}

  SmallVector<Value> build();

private:
  Value create(StringRef callee, Type type, ValueRange operands,
               ArrayRef<NamedAttribute> args = {});
  Value cast(Value value, Type element);
  Value unscaled(Value gradient, Value inverse);
  Value hasNonFinite(Value gradient);

  AtenOp op;
  OpBuilder &builder;
  Location loc;
};
} // namespace

Value Unscaling::create(StringRef callee, Type type, ValueRange operands,
                        ArrayRef<NamedAttribute> args) {
  auto dict = args.empty() ? DictionaryAttr() : builder.getDictionaryAttr(args);
  auto made = AtenOp::create(builder, loc, type, callee, operands, dict,
                             /*effects=*/false);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  made->removeDiscardableAttr(MPDialect::kPinAttrName);
  return made->getResult(0);
}

Value Unscaling::cast(Value value, Type element) {
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  auto made =
      CastOp::create(builder, loc, value, element, CastOrigin::decomposition);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  made->removeDiscardableAttr(MPDialect::kPinAttrName);
  return made;
}

/// PyTorch multiplies in f32 and rounds once.
Value Unscaling::unscaled(Value gradient, Value inverse) {
  Type own = getElementTypeOrSelf(gradient.getType());
  Value wide = isHalf(own) ? cast(gradient, builder.getF32Type()) : gradient;
  return cast(create("aten.mul.Tensor", wide.getType(), {wide, inverse}), own);
}

Value Unscaling::hasNonFinite(Value gradient) {
  auto type = ::cast<RankedTensorType>(gradient.getType());
  RankedTensorType flags = type.clone(builder.getI1Type());
  Value finite = create("aten.isfinite.default", flags, gradient);
  Value bad = create("aten.logical_not.default", flags, finite);
  return create("aten.any.default",
                RankedTensorType::get({}, builder.getI1Type()), bad);
}

SmallVector<Value> Unscaling::build() {
  unsigned count = op->getNumResults() - 1;
  Value found = op->getOperand(count), inverse = op->getOperand(count + 1);
  SmallVector<Value> results;
  Value mask;
  for (Value gradient : op->getOperands().take_front(count)) {
    results.push_back(unscaled(gradient, inverse));
    Value bad = hasNonFinite(gradient);
    mask = mask ? create("aten.logical_or.default", bad.getType(), {mask, bad})
                : bad;
  }
  auto shape = ::cast<RankedTensorType>(found.getType());
  if (shape.getRank() != 0) // PyTorch's flag is one element, of rank 0 or 1
    mask = create("aten.view.default", shape.clone(builder.getI1Type()), mask,
                  builder.getNamedAttr("size", builder.getI64ArrayAttr({1})));
  results.push_back(
      create("aten.masked_fill.Scalar", shape, {found, mask},
             builder.getNamedAttr("value", builder.getI64IntegerAttr(1))));
  return results;
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

StringRef mlir::mp::whyNotExpandable(AtenOp op) {
  if (op.getEffects() || op->getNumResults() == 0)
    return "it writes in place";
  const ForeachRow *row = lookupRow(op.getCallee());
  return row ? whyNotForeach(op, *row) : whyNotUnscaling(op);
}

SmallVector<Value> mlir::mp::expandListOperator(AtenOp op, OpBuilder &builder,
                                                Location loc) {
  if (const ForeachRow *row = lookupRow(op.getCallee()))
    return expandForeach(op, *row, builder, loc);
  return Unscaling(op, builder, loc).build();
}

void mlir::mp::replaceByLoop(AtenOp op, Location loc) {
  OpBuilder builder(op);
  op->replaceAllUsesWith(expandListOperator(op, builder, loc));
  op->erase();
}
