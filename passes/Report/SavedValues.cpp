//===- SavedValues.cpp - what forward keeps for backward ------------------===//

#include "passes/Report/SavedValues.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Report/CastReport.h"

using namespace mlir;
using namespace mlir::mp;

/// The value whose memory `value` shows.
static Value storageOf(Value value) {
  while (auto op =
             dyn_cast_or_null<PrecisionOpInterface>(value.getDefiningOp())) {
    if (!op.isView() || op->getNumOperands() == 0)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// What is computed again rather than kept: constants, random state, sizes.
static bool isNeverKept(Operation *op) {
  auto known = dyn_cast<PrecisionOpInterface>(op);
  return known && (known.getOpKind() == OpKind::Creation ||
                   known.getOpKind() == OpKind::Shape);
}

static SavedValue describe(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = cast<RankedTensorType>(value.getType());
  SavedValue saved;
  saved.region = modulePathOf(op->getLoc()).str();
  StringRef callee = frameworkCallee(op);
  saved.op = (callee.empty() ? op->getName().getStringRef() : callee).str();
  std::string text;
  llvm::raw_string_ostream(text) << type;
  saved.type = StringRef(text).drop_front(strlen("tensor<")).drop_back().str();
  saved.source = sourceText(op->getLoc());
  if (std::optional<int64_t> elements = staticNumElements(type))
    saved.bytes = *elements * elementBytes(type.getElementType());
  return saved;
}

std::vector<SavedValue> mlir::mp::collectSavedValues(ModuleOp module) {
  llvm::SetVector<Value> kept;
  module.walk([&](Operation *op) {
    if (!isBackward(op))
      return;
    for (Value operand : op->getOperands()) {
      Value storage = storageOf(operand);
      Operation *maker = storage.getDefiningOp();
      if (maker && !isBackward(maker) && !isNeverKept(maker) &&
          isa<RankedTensorType>(storage.getType()))
        kept.insert(storage);
    }
  });
  std::vector<SavedValue> saved;
  for (Value value : kept)
    saved.push_back(describe(value));
  return saved;
}
