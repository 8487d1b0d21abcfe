//===- PinEntries.cpp - the pins of a graph, for reports ------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/Pins.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Report/CastReport.h"

using namespace mlir;
using namespace mlir::mp;

std::string mlir::mp::operatorName(Operation *op) {
  StringRef callee = frameworkCallee(op);
  return (callee.empty() ? op->getName().getStringRef() : callee).str();
}

/// What f32 takes more than a half, of the results that `pin` is about.
static std::optional<int64_t> bytesOf(PinAttr pin, TypeRange results) {
  int64_t bytes = 0;
  for (auto [i, type] : llvm::enumerate(results)) {
    if (!pinsResult(pin, i) || !isa<FloatType>(getElementTypeOrSelf(type)))
      continue;
    std::optional<int64_t> elements = staticNumElements(type);
    if (!elements)
      return std::nullopt;
    bytes += 2 * *elements;
  }
  return bytes;
}

static PinEntry entryOf(PinAttr pin, Location loc, TypeRange results) {
  PinEntry entry;
  entry.region = modulePathOf(loc).str();
  entry.format = stringifyPinFormat(pin.getFormat()).str();
  entry.where = stringifyPinWhere(pin.getWhere()).str();
  entry.rule = pin.getRule().str();
  entry.reason = pin.getReason().str();
  entry.node = stemOf(loc);
  entry.source = sourceText(loc);
  entry.bytes = bytesOf(pin, results);
  return entry;
}

static void addArguments(func::FuncOp func, std::vector<PinEntry> &pins) {
  if (func.isExternal())
    return;
  for (BlockArgument arg : func.getArguments())
    for (PinAttr pin : pinsOf(arg)) {
      PinEntry entry = entryOf(pin, arg.getLoc(), arg.getType());
      auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                    MPDialect::kNameAttrName);
      entry.op =
          name ? name.str() : "argument " + std::to_string(arg.getArgNumber());
      entry.reason = entry.op + ": " + entry.reason;
      pins.push_back(std::move(entry));
    }
}

std::vector<PinEntry> mlir::mp::collectPins(ModuleOp module) {
  std::vector<PinEntry> pins;
  module.walk([&](func::FuncOp func) { addArguments(func, pins); });
  module.walk([&](Operation *op) {
    for (PinAttr pin : pinsOf(op)) {
      PinEntry entry = entryOf(pin, op->getLoc(), op->getResultTypes());
      entry.op = operatorName(op);
      entry.isBackward = isBackward(op);
      pins.push_back(std::move(entry));
    }
  });
  return pins;
}
