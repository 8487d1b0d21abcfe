//===- OpRules.cpp - operators that are sensitive by themselves -----------===//

#include "passes/Pins/PinContext.h"

using namespace mlir;
using namespace mlir::mp;

/// A half `dtype` among the arguments is the user's wish for this operator.
static bool asksForHalf(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  auto dtype = args ? args.getAs<TypeAttr>("dtype") : TypeAttr();
  return dtype && isHalf(dtype.getValue());
}

/// The derivative of a square, as autograd leaves it.
static bool isFirstPower(Operation *op) {
  return pinRoleOf(op) == PinRole::Power && numberArg(op, "exponent") == 1.0;
}

static PinWhere whereOf(PinPart part) {
  switch (part) {
  case PinPart::Result:
    return PinWhere::result;
  case PinPart::Operands:
  case PinPart::Vectors:
    return PinWhere::operands;
  case PinPart::Both:
    return PinWhere::both;
  }
  llvm_unreachable("all parts are handled");
}

static SmallVector<int64_t> vectorOperands(Operation *op) {
  SmallVector<int64_t> indices;
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (isPinnable(type) && cast<RankedTensorType>(type).getRank() == 1)
      indices.push_back(i);
  return indices;
}

/// The row's indices that `op` has a float at. PyTorch leaves out what
/// nobody needs.
static SmallVector<int64_t> indicesIn(Operation *op, const PinOpRow &row) {
  if (row.part == PinPart::Vectors)
    return vectorOperands(op);
  SmallVector<int64_t> indices(row.indices.begin(), row.indices.end());
  llvm::erase_if(indices, [&](int64_t i) {
    return i >= int64_t(op->getNumResults()) ||
           !isPinnable(op->getResult(i).getType());
  });
  return indices;
}

static void pinRow(PinContext &context, Operation *op, const PinOpRow &row) {
  SmallVector<int64_t> indices = indicesIn(op, row);
  bool isAboutSome = row.part == PinPart::Vectors || !row.indices.empty();
  if (isAboutSome && indices.empty())
    return;
  int64_t depth = elementsPerResult(op);
  std::string number =
      depth > 1 ? std::to_string(depth) + " elements each, " : "";
  context.pin(op, row.rule, whereOf(row.part),
              pinRuleText(row.rule) + "; " + number +
                  stepText(context.half, row.magnitude),
              indices);
}

void mlir::mp::detectOperators(PinContext &context) {
  for (Operation &op : context.operations()) {
    ArrayRef<PinOpRow> rows = pinRowsOf(frameworkCallee(&op));
    if (rows.empty() || asksForHalf(&op) || isFirstPower(&op))
      continue;
    for (const PinOpRow &row : rows)
      pinRow(context, &op, row);
  }
}
