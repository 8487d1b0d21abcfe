//===- Widened.cpp - what a policy has computed in f32 --------------------===//

#include "passes/Check/Widened.h"
#include "dialect/IR/Pins.h"
#include "passes/Check/PinnedGraph.h"
#include "passes/Policy/Decisions.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

/// The policy's pins to f32.
static SmallVector<PinAttr, 1> wishesFor(Operation *op) {
  SmallVector<PinAttr, 1> wishes;
  for (PinAttr pin : pinsOf(op))
    if (pin.getFormat() == PinFormat::fp32 &&
        pin.getRule().getValue() == kPolicyPinRule)
      wishes.push_back(pin);
  return wishes;
}

/// Why the policy does not ask for what the record claims; empty if it does.
/// `own` is the operation among the pins, null if it is not found there.
static std::string whyNotAsked(Operation *own, const Record &record) {
  if (!own)
    return "names no operator";
  SmallVector<PinAttr, 1> wishes = wishesFor(own);
  if (wishes.empty())
    return "names an operator that no policy wants in f32";
  for (int64_t operand : record.unrounded)
    if (operand < 0 || operand >= own->getNumOperands() ||
        llvm::none_of(
            wishes, [&](PinAttr pin) { return pinsOperand(pin, operand); }))
      return "names operand " + std::to_string(operand) +
             ", which no policy wants in f32";
  return "";
}

/// The place among `frameworkOperands` of an operand of the raised operation.
static int64_t orderedPosition(Operation *own, int64_t operand) {
  bool hasBias = isa<MatmulOp>(own) && own->getNumOperands() == 3;
  return hasBias ? (operand + 1) % 3 : operand;
}

LogicalResult mlir::mp::check::verifyWidened(func::FuncOp before,
                                             func::FuncOp after,
                                             ArrayRef<Record> records,
                                             Allowances &allowances) {
  auto isClaim = [](const Record &record) {
    return record.rule == "widen-as-asked";
  };
  if (llvm::none_of(records, isClaim))
    return success();
  PinnedGraph graph(before, Half::Auto);
  if (!graph.getFunction())
    return before.emitError("cannot be pinned as before");
  OperatorsByNode operators(before);
  LogicalResult result = success();
  for (const Record &record : llvm::make_filter_range(records, isClaim)) {
    Operation *op = operators.lookup(record.node);
    Operation *own = op ? graph.lookup(op) : nullptr;
    if (std::string why = whyNotAsked(own, record); !why.empty()) {
      result = after.emitError("record of ")
               << record.rule << " for node " << record.node << ' ' << why;
      continue;
    }
    allowances.wideResults.insert(op);
    for (int64_t operand : record.unrounded)
      allowances.unrounded[op].push_back(orderedPosition(own, operand));
    allowances.halfMatmuls.insert(record.node);
  }
  return result;
}
