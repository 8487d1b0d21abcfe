//===- Pins.cpp - what keeps a value in its type --------------------------===//

#include "dialect/IR/Pins.h"
#include "dialect/IR/UserOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

PinAttr PinAttr::get(MLIRContext *context, PinFormat format, PinWhere where,
                     StringRef rule, const Twine &reason,
                     ArrayRef<int64_t> indices) {
  Builder builder(context);
  return get(context, format, where, indices, builder.getStringAttr(rule),
             builder.getStringAttr(reason));
}

LogicalResult PinAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              PinFormat, PinWhere where,
                              ArrayRef<int64_t> indices, StringAttr rule,
                              StringAttr reason) {
  // pin_c2: evidence that can be named and read.
  if (rule.empty())
    return emitError() << "pin has no rule";
  if (reason.empty())
    return emitError() << "pin of rule '" << rule.getValue()
                       << "' has no reason";
  // pin_c3: indices are about results or about operands.
  if (where == PinWhere::both && !indices.empty())
    return emitError() << "pin of both results and operands has indices";
  return success();
}

/// pin_c1: an array of pins.
static FailureOr<SmallVector<PinAttr, 1>>
verifyPins(Attribute attr, function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<PinAttr, 1> pins;
  auto array = dyn_cast<ArrayAttr>(attr);
  if (!array)
    return emitError() << "'mp.pin' must be an array of #mp.pin, found "
                       << attr;
  for (Attribute element : array) {
    auto pin = dyn_cast<PinAttr>(element);
    if (!pin)
      return emitError() << "'mp.pin' must be an array of #mp.pin, found "
                         << element << " in it";
    pins.push_back(pin);
  }
  return pins;
}

/// pin_c4: every index is that of a result or operand.
static LogicalResult
verifyIndices(PinAttr pin, unsigned results, unsigned operands,
              function_ref<InFlightDiagnostic()> emitError) {
  bool isResult = pin.getWhere() == PinWhere::result;
  unsigned count = isResult ? results : operands;
  for (int64_t index : pin.getIndices())
    if (index < 0 || index >= int64_t(count))
      return emitError() << "pin is about "
                         << (isResult ? "result " : "operand ") << index
                         << ", of " << count;
  return success();
}

LogicalResult MPDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  if (attr.getName() == kOpRowsAttrName)
    return verifyOpRows(op, attr.getValue());
  if (attr.getName() != kPinAttrName)
    return success();
  auto emitError = [&] { return op->emitOpError(); };
  // pin_c5: on what has results or reads operands.
  if (isa<FunctionOpInterface>(op))
    return emitError() << "'mp.pin' belongs to operations and arguments";
  auto pins = verifyPins(attr.getValue(), emitError);
  if (failed(pins))
    return failure();
  for (PinAttr pin : *pins)
    if (failed(verifyIndices(pin, op->getNumResults(), op->getNumOperands(),
                             emitError)))
      return failure();
  return success();
}

LogicalResult MPDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned argIndex,
                                                  NamedAttribute attr) {
  if (attr.getName() != kPinAttrName)
    return success();
  auto emitError = [&] {
    return op->emitOpError() << "argument " << argIndex << ": ";
  };
  auto pins = verifyPins(attr.getValue(), emitError);
  if (failed(pins))
    return failure();
  for (PinAttr pin : *pins)
    if (failed(verifyIndices(pin, /*results=*/1, /*operands=*/0, emitError)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static SmallVector<PinAttr, 1> pinsIn(Attribute attr) {
  SmallVector<PinAttr, 1> pins;
  if (auto array = dyn_cast_if_present<ArrayAttr>(attr))
    for (Attribute element : array)
      if (auto pin = dyn_cast<PinAttr>(element))
        pins.push_back(pin);
  return pins;
}

static FunctionOpInterface functionOf(BlockArgument arg) {
  return dyn_cast_if_present<FunctionOpInterface>(
      arg.getOwner()->getParentOp());
}

SmallVector<PinAttr, 1> mlir::mp::pinsOf(Operation *op) {
  return pinsIn(op->getDiscardableAttr(MPDialect::kPinAttrName));
}

SmallVector<PinAttr, 1> mlir::mp::pinsOf(BlockArgument arg) {
  FunctionOpInterface func = functionOf(arg);
  if (!func)
    return {};
  return pinsIn(func.getArgAttr(arg.getArgNumber(), MPDialect::kPinAttrName));
}

SmallVector<PinAttr, 1> mlir::mp::pinsOf(Value value) {
  unsigned index = 0;
  if (auto result = dyn_cast<OpResult>(value))
    index = result.getResultNumber();
  SmallVector<PinAttr, 1> pins = value.getDefiningOp()
                                     ? pinsOf(value.getDefiningOp())
                                     : pinsOf(cast<BlockArgument>(value));
  llvm::erase_if(pins, [&](PinAttr pin) { return !pinsResult(pin, index); });
  return pins;
}

static bool isAbout(PinAttr pin, PinWhere part, unsigned index) {
  if (pin.getWhere() == PinWhere::both)
    return true;
  return pin.getWhere() == part &&
         (pin.getIndices().empty() ||
          llvm::is_contained(pin.getIndices(), int64_t(index)));
}

bool mlir::mp::pinsResult(PinAttr pin, unsigned index) {
  return isAbout(pin, PinWhere::result, index);
}

bool mlir::mp::pinsOperand(PinAttr pin, unsigned index) {
  return isAbout(pin, PinWhere::operands, index);
}

/// Whatever the traced type is, `keep` adds no rounding either.
static bool isWide(PinAttr pin) { return pin.getFormat() != PinFormat::half; }

bool mlir::mp::isPinnedWide(Value value) {
  return llvm::any_of(pinsOf(value), isWide);
}

bool mlir::mp::isKept(Value value) {
  return llvm::any_of(pinsOf(value), [](PinAttr pin) {
    return pin.getFormat() == PinFormat::keep;
  });
}

bool mlir::mp::isPinnedWide(OpOperand &operand) {
  return llvm::any_of(pinsOf(operand.getOwner()), [&](PinAttr pin) {
    return isWide(pin) && pinsOperand(pin, operand.getOperandNumber());
  });
}

bool mlir::mp::hasPinnedOperands(Operation *op) {
  return llvm::any_of(pinsOf(op), [](PinAttr pin) {
    return isWide(pin) && pin.getWhere() != PinWhere::result;
  });
}

//===----------------------------------------------------------------------===//
// Adding
//===----------------------------------------------------------------------===//

/// `pins` with `pin` at its end; null if it is among them.
static ArrayAttr appended(ArrayRef<PinAttr> pins, PinAttr pin) {
  if (llvm::is_contained(pins, pin))
    return nullptr;
  SmallVector<Attribute> all(pins.begin(), pins.end());
  all.push_back(pin);
  return ArrayAttr::get(pin.getContext(), all);
}

bool mlir::mp::addPin(Operation *op, PinAttr pin) {
  ArrayAttr pins = appended(pinsOf(op), pin);
  if (pins)
    op->setDiscardableAttr(MPDialect::kPinAttrName, pins);
  return pins != nullptr;
}

bool mlir::mp::addPin(BlockArgument arg, PinAttr pin) {
  FunctionOpInterface func = functionOf(arg);
  ArrayAttr pins = func ? appended(pinsOf(arg), pin) : nullptr;
  if (pins)
    func.setArgAttr(arg.getArgNumber(), MPDialect::kPinAttrName, pins);
  return pins != nullptr;
}

void mlir::mp::renumberPinnedOperands(Operation *op,
                                      ArrayRef<int64_t> newIndex) {
  SmallVector<Attribute> pins;
  for (PinAttr pin : pinsOf(op)) {
    SmallVector<int64_t> indices(pin.getIndices());
    if (pin.getWhere() == PinWhere::operands)
      for (int64_t &index : indices)
        index = newIndex[index];
    llvm::sort(indices);
    pins.push_back(PinAttr::get(op->getContext(), pin.getFormat(),
                                pin.getWhere(), indices, pin.getRule(),
                                pin.getReason()));
  }
  if (!pins.empty())
    op->setDiscardableAttr(MPDialect::kPinAttrName,
                           ArrayAttr::get(op->getContext(), pins));
}
