//===- PinMatch.cpp - how detectors look at a graph -----------------------===//

#include "passes/Pins/PinMatch.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

/// Longer chains of views and conversions are not followed: a detector must
/// stay linear in the graph.
static constexpr unsigned kMaxChain = 32;

bool mlir::mp::isPinnable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         (isHalf(tensor.getElementType()) || tensor.getElementType().isF32());
}

bool mlir::mp::isMaskOrIndex(Operation *op, unsigned i) {
  auto operand = dyn_cast<TensorType>(op->getOperand(i).getType());
  auto result = dyn_cast<TensorType>(op->getResult(0).getType());
  return !isa<CastOp>(op) && operand && result &&
         operand.getElementType().isInteger() &&
         operand.getElementType() != result.getElementType();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::optional<double> mlir::mp::numberArg(Operation *op, StringRef name) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  Attribute arg = args ? args.get(name) : Attribute();
  if (auto number = dyn_cast_if_present<FloatAttr>(arg))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_if_present<IntegerAttr>(arg)) {
    bool isTruth = number.getType().isInteger(1);
    return isTruth ? number.getValue().roundToDouble(/*isSigned=*/false)
                   : number.getValue().signedRoundToDouble();
  }
  return std::nullopt;
}

std::optional<double> mlir::mp::constantOf(Value value) {
  Operation *op = producerOf(value);
  if (!op || opKindOf(op) != OpKind::Creation)
    return std::nullopt;
  for (StringRef name : {"fill_value", "s"})
    if (std::optional<double> number = numberArg(op, name))
      return number;
  return std::nullopt;
}

std::optional<double> mlir::mp::literalOf(Operation *op, Value &operand) {
  if (op->getNumOperands() == 0)
    return std::nullopt;
  operand = op->getOperand(0);
  if (op->getNumOperands() == 1)
    return numberArg(op, "other");
  if (op->getNumOperands() != 2)
    return std::nullopt;
  if (std::optional<double> number = constantOf(op->getOperand(1)))
    return number;
  operand = op->getOperand(1);
  return constantOf(op->getOperand(0));
}

int64_t mlir::mp::elementsPerResult(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return 0;
  auto read = staticNumElements(op->getOperand(0).getType());
  auto made = staticNumElements(op->getResult(0).getType());
  return read && made && *made > 0 ? *read / *made : 0;
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

bool mlir::mp::isTransparent(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return false;
  if (auto cast = dyn_cast<CastOp>(op))
    return isa<FloatType>(cast.getFrom()) && isa<FloatType>(cast.getTo());
  if (isa<RoundOp, MaterializeOp>(op))
    return true;
  OpKind kind = opKindOf(op);
  if (!isViewKind(kind) && kind != OpKind::Movement)
    return false;
  // Symbolic sizes are no elements; other tensors are.
  return elementTypeOf(op->getOperand(0)) == elementTypeOf(op->getResult(0)) &&
         llvm::none_of(op->getOperands().drop_front(), [](Value operand) {
           return isa<TensorType>(operand.getType());
         });
}

Value mlir::mp::origin(Value value) {
  for (unsigned length = 0; length != kMaxChain; ++length) {
    Operation *op = value.getDefiningOp();
    if (!op || !isTransparent(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Value mlir::mp::squared(Operation *op) {
  PinRole role = pinRoleOf(op);
  if (role == PinRole::Square && op->getNumOperands() == 1)
    return op->getOperand(0);
  if (role == PinRole::Power && op->getNumOperands() == 1 &&
      numberArg(op, "exponent") == 2.0)
    return op->getOperand(0);
  if (role == PinRole::Multiply && op->getNumOperands() == 2 &&
      origin(op->getOperand(0)) == origin(op->getOperand(1)))
    return op->getOperand(0);
  return {};
}

void mlir::mp::forEachReader(Value value,
                             function_ref<void(OpOperand &)> visit) {
  SmallVector<Value> pending = {value};
  for (unsigned chain = 0; !pending.empty();)
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (!isTransparent(user))
        visit(use);
      else if (++chain <= kMaxChain)
        pending.push_back(user->getResult(0));
    }
}

bool mlir::mp::hasReader(Value value, function_ref<bool(OpOperand &)> what) {
  bool found = false;
  forEachReader(value, [&](OpOperand &use) { found = found || what(use); });
  return found;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string mlir::mp::operandText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0)
    return "a scalar";
  return sizesText(tensor.getShape());
}

std::string mlir::mp::numberText(double number) {
  std::string text;
  bool isWhole = number == std::floor(number) && std::abs(number) < 1e7;
  llvm::raw_string_ostream(text)
      << llvm::format(isWhole ? "%.0f" : "%.4g", number);
  return text;
}
