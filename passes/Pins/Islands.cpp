//===- Islands.cpp - what has no half type, or was kept from one ----------===//

#include "passes/Pins/PinContext.h"
#include "passes/Policy/Decisions.h"

using namespace mlir;
using namespace mlir::mp;

static Type elementOf(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

//===----------------------------------------------------------------------===//
// Complex numbers and two half types
//===----------------------------------------------------------------------===//

static bool isComplex(Value value) {
  return isa_and_present<ComplexType>(elementOf(value));
}

static bool mixesHalves(Operation *op) {
  auto has = [&](auto predicate) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Type element = elementOf(operand);
      return element && predicate(element);
    });
  };
  return has([](Type type) { return type.isF16(); }) &&
         has([](Type type) { return type.isBF16(); });
}

void mlir::mp::detectForeignTypes(PinContext &context) {
  for (Operation &op : context.operations()) {
    if (llvm::any_of(op.getOperands(), isComplex) ||
        llvm::any_of(op.getResults(), isComplex))
      context.keep(&op, PinRule::Complex,
                   "there is no half complex type to compute in");
    if (mixesHalves(&op))
      context.pin(&op, PinRule::MixedHalves, PinWhere::both,
                  "reads f16 and bf16; 1e5 is a bf16 and infinite in f16, "
                  "1.001 an f16 and 1 in bf16");
  }
}

//===----------------------------------------------------------------------===//
// Autocast off
//===----------------------------------------------------------------------===//

/// The region that a reader of saved graphs found the operator in.
static constexpr StringLiteral kAutocastAttrName = "mp.autocast";

static bool isMarkedOff(Operation *op) {
  auto region = op->getAttrOfType<StringAttr>(kAutocastAttrName);
  return region && region.getValue() == "off" &&
         (llvm::any_of(op->getOperandTypes(), isPinnable) ||
          llvm::any_of(op->getResultTypes(), isPinnable));
}

static bool readsOnly(Operation *op, llvm::function_ref<bool(Value)> what) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isPinnable(operand.getType()) || what(operand);
  });
}

/// The conversion behind views that widened a half; null if there is none.
static CastOp wideningOf(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  while (!cast && value.getDefiningOp() &&
         isTransparent(value.getDefiningOp())) {
    value = value.getDefiningOp()->getOperand(0);
    cast = value.getDefiningOp<CastOp>();
  }
  return cast && cast.isExact() && isHalf(cast.getFrom()) ? cast : CastOp();
}

static bool isWidenedHalf(Value value) { return wideningOf(value) != nullptr; }

/// True if mp-widen-pinned made it so: the model did not want it.
static bool isWidenedByPin(Operation *op) {
  auto isOurs = [](Value value) {
    CastOp cast = wideningOf(value);
    return cast && cast.getOrigin() == CastOrigin::mpopt;
  };
  bool isPolicy = llvm::any_of(pinsOf(op), [](PinAttr pin) {
    return pin.getFormat() == PinFormat::fp32 &&
           pin.getRule().getValue() == kPolicyPinRule;
  });
  return isPolicy || readsOnly(op, isOurs);
}

namespace {
/// Where autocast is on, it gives each product half operands; one of f32 is
/// there because the model wanted it.
struct IslandFinder {
  explicit IslandFinder(PinContext &context) : context(context) {}

  void run() {
    for (Operation &op : context.operations()) {
      if (auto cast = dyn_cast<CastOp>(op))
        hasAutocast |= cast.getOrigin() == CastOrigin::autocast;
      else if (isMarkedOff(&op))
        context.keep(&op, PinRule::AutocastOff,
                     "the model turned autocast off");
    }
    if (!hasAutocast)
      return;
    forEachProduct([&](Operation *op) { halfProducts += readsHalves(op); });
    forEachProduct([&](Operation *op) {
      if (!isMarkedOff(op) && isWideProduct(op) && !isWidenedByPin(op))
        pinProduct(op);
    });
  }

private:
  void forEachProduct(function_ref<void(Operation *)> visit) const {
    for (OpKind kind : {OpKind::Matmul, OpKind::Convolution, OpKind::Attention})
      for (Operation *op : context.ofKind(kind))
        if (llvm::any_of(op->getOperandTypes(), isPinnable))
          visit(op);
  }

  static bool isWideProduct(Operation *op) {
    return readsOnly(op,
                     [](Value operand) { return elementOf(operand).isF32(); });
  }

  static bool readsHalves(Operation *op) {
    return readsOnly(op,
                     [](Value operand) { return isHalf(elementOf(operand)); });
  }

  void pinProduct(Operation *op) {
    std::string why = "f32 operands although autocast is on for " +
                      std::to_string(halfProducts) + " other products";
    // Widened halves are halves: an f32 result is what the model asked for.
    if (readsOnly(op, isWidenedHalf))
      return context.pin(op, PinRule::AutocastOff, PinWhere::result,
                         why + "; they are widened halves");
    context.pin(op, PinRule::AutocastOff, PinWhere::both, why);
  }

  PinContext &context;
  bool hasAutocast = false;
  int64_t halfProducts = 0;
};
} // namespace

void mlir::mp::detectAutocastOff(PinContext &context) {
  IslandFinder(context).run();
}
