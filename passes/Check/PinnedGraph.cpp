//===- PinnedGraph.cpp - what must keep its type, found anew --------------===//

#include "passes/Check/PinnedGraph.h"
#include "dialect/IR/Pins.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Check/NormalForm.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

OperatorsByNode::OperatorsByNode(func::FuncOp func) {
  for (auto [position, op] :
       llvm::enumerate(func.getBody().front().without_terminator())) {
    if (isConversion(&op) || isa<RoundOp, MaterializeOp>(op))
      continue;
    nodes[&op] = nodeNumber(&op, position);
    auto [entry, isNew] = operators.try_emplace(nodes[&op], &op);
    if (!isNew)
      entry->second = nullptr;
  }
}

int64_t OperatorsByNode::nodeOf(Operation *op) const {
  auto found = nodes.find(op);
  return found == nodes.end() ? -1 : found->second;
}

/// Runs what comes before the choice of types. Warnings of a policy were given
/// when it ran first.
static LogicalResult runPins(ModuleOp module, Half half) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &diag) {
    return success(diag.getSeverity() != DiagnosticSeverity::Error);
  });
  auto pm = PassManager::on<ModuleOp>(module.getContext());
  OpPassManager &nested = pm.nest<func::FuncOp>();
  nested.addPass(createNormalize());
  nested.addPass(createRaise());
  nested.addPass(createApplyPolicy());
  PinTypesOptions options;
  options.half = half;
  nested.addPass(createPinTypes(options));
  return pm.run(module);
}

PinnedGraph::PinnedGraph(func::FuncOp func, Half half)
    : module(ModuleOp::create(func.getLoc())), originals(func) {
  func::FuncOp clone = func.clone();
  module->push_back(clone);
  if (failed(runPins(*module, half)))
    return;
  copy = clone;
  copies.emplace(copy);
}

Operation *PinnedGraph::lookup(Operation *op) const {
  int64_t node = originals.nodeOf(op);
  return node < 0 ? nullptr : copies->lookup(node);
}

void PinnedGraph::addPinsOf(func::FuncOp after) {
  for (auto [position, op] :
       llvm::enumerate(after.getBody().front().without_terminator())) {
    Operation *own = copies->lookup(nodeNumber(&op, position));
    // The framework has another order of the operands of products.
    if (!own || isConversion(&op) ||
        own->getNumOperands() != op.getNumOperands() ||
        (isa<MatmulOp>(own) && !isa<MatmulOp>(op)))
      continue;
    for (PinAttr pin : pinsOf(&op))
      addPin(own, pin);
  }
}

/// The first of `pins` that forbids roundings and fits.
static std::string describe(ArrayRef<PinAttr> pins,
                            llvm::function_ref<bool(PinAttr)> fits) {
  for (PinAttr pin : pins)
    if (pin.getFormat() != PinFormat::half && fits(pin))
      return (pin.getRule().getValue() + " (" + pin.getReason().getValue() +
              ")")
          .str();
  return "";
}

std::string mlir::mp::check::describeWidePin(Value value) {
  return describe(pinsOf(value), [](PinAttr) { return true; });
}

std::string mlir::mp::check::describeWidePin(OpOperand &operand) {
  return describe(pinsOf(operand.getOwner()), [&](PinAttr pin) {
    return pinsOperand(pin, operand.getOperandNumber());
  });
}
