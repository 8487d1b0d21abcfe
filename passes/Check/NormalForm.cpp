//===- NormalForm.cpp - from a function to terms --------------------------===//

#include "passes/Check/NormalForm.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "passes/Placement/LibraryCalls.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

//===----------------------------------------------------------------------===//
// What an operation is
//===----------------------------------------------------------------------===//

static std::optional<OpKind> kindOf(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision ? std::optional(precision.getOpKind()) : std::nullopt;
}

bool mlir::mp::check::isOrdered(Operation *op) {
  std::optional<OpKind> kind = kindOf(op);
  return kind == OpKind::Random || kind == OpKind::Effect ||
         !isMemoryEffectFree(op);
}

/// Of the arguments of a conversion in the framework, only the dtype counts.
static bool onlyNamesDtype(DictionaryAttr args) {
  return !args || llvm::all_of(args, [](NamedAttribute arg) {
    auto flag = dyn_cast<BoolAttr>(arg.getValue());
    return arg.getName() == "dtype" || isa<UnitAttr>(arg.getValue()) ||
           (flag && !flag.getValue());
  });
}

bool mlir::mp::check::isConversion(Operation *op) {
  if (isa<CastOp>(op))
    return true;
  auto aten = dyn_cast<AtenOp>(op);
  bool isSpelling =
      aten &&
      llvm::StringSwitch<bool>(aten.getCallee())
          .Cases({"aten.to.dtype", "aten._to_copy.default",
                  "aten.type_as.default", "prims.convert_element_type.default"},
                 true)
          .Default(false);
  if (!isSpelling || isOrdered(op) || op->getNumResults() != 1 ||
      op->getNumOperands() == 0 || !onlyNamesDtype(aten.getArgsAttr()))
    return false;
  auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return from && to && from.getShape() == to.getShape();
}

static FloatType floatElement(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
}

/// The element type of a float tensor with dimensions: one without does not
/// promote one with them.
static FloatType dimensionedFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 ? floatElement(value) : FloatType();
}

FloatType mlir::mp::check::promotedType(OpOperand &operand) {
  Operation *op = operand.getOwner();
  std::optional<OpKind> kind = kindOf(op);
  if ((kind != OpKind::Pointwise && kind != OpKind::Monotone) ||
      isa<CastOp, RoundOp>(op) || op->getNumResults() != 1)
    return {};
  FloatType wide = dimensionedFloat(op->getResult(0));
  FloatType own = dimensionedFloat(operand.get());
  if (!wide || !own || own == wide || !isExactConversion(own, wide))
    return {};
  // Without an operand of the result's type it is wide for another reason.
  bool hasWide = llvm::any_of(op->getOperands(), [&](Value other) {
    return dimensionedFloat(other) == wide;
  });
  return hasWide ? wide : FloatType();
}

/// An argument that names a dtype decides the result type by itself.
static bool namesDtype(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  return args && llvm::any_of(args, [](NamedAttribute arg) {
           return isa<TypeAttr>(arg.getValue());
         });
}

/// What the operator does with the elements of its operands.
static Transparency transparencyOfKind(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || isa<CastOp, RoundOp>(op) || isOrdered(op) || namesDtype(op))
    return Transparency::None;
  if (precision.commutesWithRounding())
    return Transparency::All;
  return precision.selectsByOrder() && op->getNumResults() == 1
             ? Transparency::Exact
             : Transparency::None;
}

/// True if integer operands are indices or masks. Elsewhere they are values
/// that the operator converts, as where does with a mask and integers.
static bool integersOnlyChoose(Operation *op) {
  bool hasMask = false, hasIndex = false;
  for (Value operand : op->getOperands()) {
    auto tensor = dyn_cast<TensorType>(operand.getType());
    if (tensor && !isa<FloatType>(tensor.getElementType()))
      (tensor.getElementType().isInteger(1) ? hasMask : hasIndex) = true;
  }
  return kindOf(op) == OpKind::Gather ? !hasMask || !hasIndex
                                      : !hasMask && !hasIndex;
}

Transparency mlir::mp::check::transparencyOf(Operation *op) {
  Transparency transparency = transparencyOfKind(op);
  FloatType element =
      op->getNumResults() ? floatElement(op->getResult(0)) : FloatType();
  if (transparency == Transparency::None || !element || !integersOnlyChoose(op))
    return Transparency::None;
  bool hasValue = false;
  for (OpOperand &operand : op->getOpOperands()) {
    FloatType own = floatElement(operand.get());
    if (FloatType promoted = promotedType(operand))
      own = promoted;
    // A bare number is a constant whose value is not known here.
    if ((own && own != element) || isa<FloatType>(operand.get().getType()))
      return Transparency::None;
    hasValue |= own == element;
  }
  bool sameResults = llvm::all_of(op->getResults(), [&](Value result) {
    return floatElement(result) == element;
  });
  return hasValue && sameResults ? transparency : Transparency::None;
}

static bool namesMatrixProduct(StringRef callee) {
  return llvm::StringSwitch<bool>(stripOverload(callee))
      .Cases({"aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm"}, true)
      .Default(false);
}

bool mlir::mp::check::isMatrixProduct(Operation *op) {
  return namesMatrixProduct(frameworkCallee(op));
}

/// The overload `dtype` of a matrix product names its result type, which the
/// term holds anyway.
static Attribute withoutResultType(DictionaryAttr args) {
  if (!args)
    return {};
  NamedAttrList list(args);
  list.erase("out_dtype");
  return list.empty() ? Attribute() : list.getDictionary(args.getContext());
}

std::pair<Attribute, Attribute> mlir::mp::check::signatureOf(Operation *op) {
  Builder builder(op->getContext());
  StringRef callee = frameworkCallee(op);
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  if (args && args.empty())
    args = {};
  if (namesMatrixProduct(callee))
    return {builder.getStringAttr(stripOverload(callee)),
            withoutResultType(args)};
  if (!callee.empty())
    return {builder.getStringAttr(callee), args};
  NamedAttrList attrs(op->getAttrDictionary());
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (attr.getName().strref().starts_with("mp."))
      attrs.erase(attr.getName());
  return {builder.getStringAttr(op->getName().getStringRef()),
          attrs.getDictionary(op->getContext())};
}

int64_t mlir::mp::check::nodeNumber(Operation *op, int64_t position) {
  int64_t stem = stemOf(op->getLoc());
  return stem < 0 ? position : stem;
}

//===----------------------------------------------------------------------===//
// Walk
//===----------------------------------------------------------------------===//

namespace {
class FormBuilder {
public:
  FormBuilder(TermTable &table, const Allowances &allowances)
      : table(table), allowances(allowances) {}

  NormalForm build(func::FuncOp func);

private:
  void visit(Operation *op, int64_t position);
  void visitConversion(Operation *op);
  void visitRounding(RoundOp op);
  void visitOperator(Operation *op, int64_t position);
  void promoteOperands(Operation *op, MutableArrayRef<TermId> args);
  void widenOperands(Operation *op, MutableArrayRef<TermId> args,
                     ArrayRef<Value> operands, int64_t position);
  TermId widened(Operation *op, int64_t position, TermId arg, Value operand);
  void roundReads(Operation *op, MutableArrayRef<TermId> args);
  void narrowCall(Operation *op, MutableArrayRef<TermId> args,
                  ArrayRef<Value> operands);
  Type computedType(OpResult result) const;
  TermId roundResult(OpResult result, TermId computed);

  TermTable &table;
  const Allowances &allowances;
  NormalForm form;
};
} // namespace

void FormBuilder::visitConversion(Operation *op) {
  TermId input = form.terms.lookup(op->getOperand(0));
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  form.terms[op->getResult(0)] = allowances.dropped.contains(op)
                                     ? table.dropped(input, element, op)
                                     : table.convert(input, element, op);
}

/// round(x to F) is a narrowing and a widening; dropped, it is nothing.
void FormBuilder::visitRounding(RoundOp op) {
  TermId input = form.terms.lookup(op.getInput());
  if (!allowances.dropped.contains(op)) {
    TermId narrow = table.convert(input, op.getFormat(), op);
    input = table.convert(narrow, op.getInput().getType().getElementType(), op);
  }
  form.terms[op.getOutput()] = input;
}

/// A pointwise operator widens its narrower operands to the widest by itself.
void FormBuilder::promoteOperands(Operation *op, MutableArrayRef<TermId> args) {
  for (auto [arg, operand] : llvm::zip(args, op->getOpOperands()))
    if (FloatType wide = promotedType(operand))
      arg = table.convert(arg, wide, op);
}

/// Data movement between a rounding and its reader, innermost last, if autocast
/// rounded f32 in front of it; `rounding` is null otherwise.
static SmallVector<Operation *> movedSince(Value operand, CastOp &rounding) {
  SmallVector<Operation *> moves;
  Operation *op = operand.getDefiningOp();
  while (op && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         transparencyOf(op) == Transparency::All) {
    moves.push_back(op);
    op = op->getOperand(0).getDefiningOp();
  }
  rounding = dyn_cast_or_null<CastOp>(op);
  if (rounding && (rounding.getOrigin() != CastOrigin::autocast ||
                   !rounding.getFrom().isF32()))
    rounding = {};
  return moves;
}

/// An operand of half type in f32: widened or, where a record says so, as it
/// was before autocast rounded it.
TermId FormBuilder::widened(Operation *op, int64_t position, TermId arg,
                            Value operand) {
  Type f32 = Float32Type::get(op->getContext());
  auto unrounded = allowances.unrounded.find(op);
  CastOp rounding;
  SmallVector<Operation *> moves;
  if (unrounded != allowances.unrounded.end() &&
      llvm::is_contained(unrounded->second, position))
    moves = movedSince(operand, rounding);
  if (!rounding)
    return table.convert(arg, f32, op);
  TermId source = form.terms.lookup(rounding.getInput());
  for (Operation *move : llvm::reverse(moves)) {
    Term term;
    term.kind = TermKind::Apply;
    term.transparency = Transparency::All;
    std::tie(term.name, term.attrs) = signatureOf(move);
    term.op = move;
    term.type = cast<TensorType>(move->getResult(0).getType()).clone(f32);
    source = table.apply(term, source);
  }
  return source;
}

/// matmul(a : half, b : half) into f32, which a record allows, is the product
/// of the widened operands. So is what a record says to be computed in f32.
void FormBuilder::widenOperands(Operation *op, MutableArrayRef<TermId> args,
                                ArrayRef<Value> operands, int64_t position) {
  if (allowances.wideResults.contains(op))
    for (auto [i, operand] : llvm::enumerate(operands))
      if (FloatType own = floatElement(operand); own && isHalf(own))
        args[i] = widened(op, i, args[i], operand);
  if (!allowances.halfMatmuls.contains(nodeNumber(op, position)) ||
      !isMatrixProduct(op) || operands.size() != 2)
    return;
  FloatType result = floatElement(op->getResult(0));
  bool readsHalves =
      result && result.isF32() && llvm::all_of(operands, [](Value operand) {
        FloatType own = floatElement(operand);
        return own && isHalf(own);
      });
  if (readsHalves)
    for (TermId &arg : args)
      arg = table.convert(arg, result, op);
}

/// What a record says of the operands: no reader of them has another order of
/// operands in the framework.
void FormBuilder::roundReads(Operation *op, MutableArrayRef<TermId> args) {
  auto reads = allowances.roundedReads.find(op);
  if (reads == allowances.roundedReads.end())
    return;
  for (auto [operand, half] : reads->second) {
    TermId &arg = args[operand];
    Type wide = table.elementType(arg);
    arg = table.convert(table.convert(arg, half, op), wide, op);
  }
}

void FormBuilder::narrowCall(Operation *op, MutableArrayRef<TermId> args,
                             ArrayRef<Value> operands) {
  auto call = allowances.halfCalls.find(op);
  if (call == allowances.halfCalls.end())
    return;
  for (auto [arg, operand] : llvm::zip(args, operands))
    if (changesWithCall(op, operand.getType()))
      arg = table.convert(arg, call->second.half, op);
}

/// The type that `op` computes, before it rounds as `roundResult` says.
Type FormBuilder::computedType(OpResult result) const {
  Operation *op = result.getOwner();
  auto tensor = dyn_cast<TensorType>(result.getType());
  if (allowances.wideResults.contains(op))
    return tensor && isHalf(tensor.getElementType())
               ? tensor.clone(Float32Type::get(op->getContext()))
               : result.getType();
  auto call = allowances.halfCalls.find(op);
  bool isHalf = call != allowances.halfCalls.end() &&
                !call->second.keepsResult &&
                changesWithCall(op, result.getType());
  return isHalf ? tensor.clone(call->second.half) : result.getType();
}

TermId FormBuilder::roundResult(OpResult result, TermId computed) {
  Operation *op = result.getOwner();
  Type traced = getElementTypeOrSelf(result.getType());
  if (allowances.wideResults.contains(op) && allowances.dropped.contains(op))
    return table.dropped(computed, traced, op);
  return table.elementType(computed) == traced
             ? computed
             : table.convert(computed, traced, op);
}

void FormBuilder::visitOperator(Operation *op, int64_t position) {
  SmallVector<Value> operands = frameworkOperands(op);
  SmallVector<TermId, 4> args;
  for (Value operand : operands)
    args.push_back(form.terms.lookup(operand));

  Term term;
  term.kind = TermKind::Apply;
  term.transparency = transparencyOf(op);
  promoteOperands(op, args);
  widenOperands(op, args, operands, position);
  roundReads(op, args);
  narrowCall(op, args, operands);
  if (isOrdered(op)) {
    form.effects.push_back(op);
    form.effectOperands.emplace_back(args);
    term.serial = form.effects.size();
  }
  std::tie(term.name, term.attrs) = signatureOf(op);
  if (op->getNumResults() > 1) {
    SmallVector<Attribute> results;
    for (OpResult result : op->getResults())
      results.push_back(TypeAttr::get(computedType(result)));
    term.results = ArrayAttr::get(op->getContext(), results);
  }
  term.op = op;
  for (OpResult result : op->getResults()) {
    term.index = result.getResultNumber();
    term.type = computedType(result);
    form.terms[result] = roundResult(result, table.apply(term, args));
  }
}

void FormBuilder::visit(Operation *op, int64_t position) {
  if (auto round = dyn_cast<RoundOp>(op))
    return visitRounding(round);
  if (isConversion(op))
    return visitConversion(op);
  if (isa<MaterializeOp>(op)) { // a wish about memory, no value
    form.terms[op->getResult(0)] = form.terms.lookup(op->getOperand(0));
    return;
  }
  visitOperator(op, position);
}

NormalForm FormBuilder::build(func::FuncOp func) {
  Block &body = func.getBody().front();
  for (BlockArgument argument : body.getArguments())
    form.terms[argument] =
        table.input(argument.getArgNumber(), argument.getType());
  for (auto [position, op] : llvm::enumerate(body.without_terminator()))
    if (!table.isExhausted())
      visit(&op, position);
  return std::move(form);
}

NormalForm mlir::mp::check::normalForm(func::FuncOp func, TermTable &table,
                                       const Allowances &allowances) {
  return FormBuilder(table, allowances).build(func);
}
