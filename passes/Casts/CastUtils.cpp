//===- CastUtils.cpp - shared by the cast patterns ------------------------===//

#include "dialect/IR/Arguments.h"
#include "dialect/IR/Pins.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

static bool isBetweenFloats(CastOp cast) {
  return isa<FloatType>(cast.getFrom()) && isa<FloatType>(cast.getTo());
}

bool mlir::mp::isNarrowing(CastOp cast) {
  return isBetweenFloats(cast) && !cast.isExact();
}

Type mlir::mp::roundedFormat(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return isa<FloatType>(cast.getTo()) ? cast.getTo() : Type();
  if (auto round = dyn_cast<RoundOp>(op))
    return round.getFormat();
  return {};
}

bool mlir::mp::isRoundedAlready(CastOp narrowing) {
  auto round = narrowing.getInput().getDefiningOp<RoundOp>();
  return round && isExactConversion(round.getFormat(), narrowing.getTo());
}

bool mlir::mp::isWidening(CastOp cast) {
  return isBetweenFloats(cast) && cast.isExact() &&
         cast.getFrom() != cast.getTo();
}

bool mlir::mp::inSamePhase(Operation *a, Operation *b) {
  return isBackward(a) == isBackward(b) &&
         a->getAttr(MPDialect::kRecomputeAttrName) ==
             b->getAttr(MPDialect::kRecomputeAttrName);
}

void mlir::mp::copyPhase(Operation *from, Operation *to) {
  for (StringRef name :
       {MPDialect::kBackwardAttrName, MPDialect::kRecomputeAttrName})
    if (Attribute attr = from->getAttr(name))
      to->setAttr(name, attr);
}

/// Longer chains of views than this are taken for the worst case.
static constexpr unsigned kMaxViews = 32;

static bool isView(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && precision.isView() && op->getNumOperands() != 0;
}

bool mlir::mp::reachesOutput(Value value, Operation *except) {
  SmallVector<Value> pending = {value};
  for (unsigned views = 0; !pending.empty();) {
    for (Operation *user : pending.pop_back_val().getUsers()) {
      if (isa<func::ReturnOp>(user))
        return true;
      if (user == except || !isView(user))
        continue;
      if (++views > kMaxViews)
        return true;
      pending.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

bool mlir::mp::wouldAlias(Value from, Value to) {
  if (!reachesOutput(from))
    return false;
  Value root = to;
  for (unsigned views = 0;; ++views) {
    Operation *op = root.getDefiningOp();
    if (!op)
      return true; // a graph input
    if (!isView(op))
      return reachesOutput(root);
    if (views == kMaxViews)
      return true;
    root = op->getOperand(0);
  }
}

static bool isValueOf(const llvm::APFloat &value, FloatType type) {
  llvm::APFloat converted = value;
  bool losesInfo = false;
  converted.convert(type.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return !losesInfo;
}

static bool isIntegerValueOf(const llvm::APInt &value, FloatType type) {
  llvm::APFloat converted(type.getFloatSemantics());
  return converted.convertFromAPInt(value, /*IsSigned=*/true,
                                    llvm::APFloat::rmNearestTiesToEven) ==
         llvm::APFloat::opOK;
}

/// "%2" of a tensor operand; a symbolic number could be any filler.
static bool refersToTensor(Operation *op, Attribute reference) {
  Value operand = operandOf(op, reference);
  return operand && isa<TensorType>(operand.getType());
}

bool mlir::mp::hasExactFillers(Operation *op, Type elementType) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  auto type = dyn_cast<FloatType>(elementType);
  if (!args || !type)
    return type != nullptr;
  bool exact = true;
  args.walk(
      [&](FloatAttr filler) { exact &= isValueOf(filler.getValue(), type); });
  // Other integers are sizes, dimensions and positions.
  for (StringRef name : {"value", "other", "self", "fill_value"}) {
    Attribute filler = args.get(name);
    if (auto number = dyn_cast_if_present<IntegerAttr>(filler))
      exact &= isIntegerValueOf(number.getValue(), type);
    if (isa_and_present<StringAttr>(filler))
      exact &= refersToTensor(op, filler);
  }
  return exact;
}

bool mlir::mp::keepsTypes(Operation *op) {
  return llvm::any_of(pinsOf(op), [](PinAttr pin) {
    return pin.getFormat() == PinFormat::keep;
  });
}

bool mlir::mp::namesDtype(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  if (!args)
    return false;
  return llvm::any_of(
      args, [](NamedAttribute attr) { return isa<TypeAttr>(attr.getValue()); });
}

RankedTensorType mlir::mp::resultIn(Operation *op, Type elementType) {
  return withElementType(op->getResult(0), elementType);
}

std::string mlir::mp::describe(CastOp cast) {
  std::string text;
  llvm::raw_string_ostream(text) << cast.getFrom() << " to " << cast.getTo();
  return text;
}
