//===- UserOps.cpp - kinds of operators that users bring ------------------===//

#include "dialect/IR/UserOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::mp;

static DictionaryAttr rowsAround(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp())
    if (isa<FunctionOpInterface>(parent))
      return dyn_cast_if_present<DictionaryAttr>(
          parent->getDiscardableAttr(MPDialect::kOpRowsAttrName));
  return {};
}

OpKind mlir::mp::userOpKind(AtenOp op) {
  DictionaryAttr rows = rowsAround(op);
  if (!rows)
    return OpKind::Unknown;
  auto kind = rows.getAs<StringAttr>(op.getCallee());
  if (!kind)
    kind = rows.getAs<StringAttr>(stripOverload(op.getCallee()));
  if (!kind)
    return OpKind::Unknown;
  return symbolizeOpKind(kind.getValue()).value_or(OpKind::Unknown);
}

LogicalResult mlir::mp::verifyOpRows(Operation *op, Attribute attr) {
  // op_rows_c1: a dictionary, on a function.
  auto rows = dyn_cast<DictionaryAttr>(attr);
  if (!rows || !isa<FunctionOpInterface>(op))
    return op->emitOpError(
        "'mp.op_rows' must be a dictionary, and on a function");
  // op_rows_c2: its values are kinds.
  for (NamedAttribute row : rows) {
    auto kind = dyn_cast<StringAttr>(row.getValue());
    if (!kind || !symbolizeOpKind(kind.getValue()))
      return op->emitOpError("'mp.op_rows' has no kind for '")
             << row.getName().getValue() << "', but " << row.getValue();
  }
  return success();
}
