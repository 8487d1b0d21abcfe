//===- CastEvaluators.cpp - conversions and roundings ---------------------===//

#include "codegen/Reference/Evaluators.h"
#include "dialect/IR/MPOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

/// Element by element into the result's type; each rounds once.
static std::vector<Tensor> evaluateCast(Call &call) {
  const Tensor &input = call.operand(0);
  Tensor result(call.resultType(), input.shape);
  for (int64_t i = 0, end = input.numElements(); i != end; ++i) {
    if (input.isFloat())
      result.set(i, input.floats[i]);
    else
      result.setInt(i, input.ints[i]);
  }
  return one(std::move(result));
}

/// round(x to F) = widen(narrow(x to F)): the value is in F, the type is x's.
static std::vector<Tensor> evaluateRound(Call &call) {
  Type format = cast<RoundOp>(call.op()).getFormat();
  Tensor result = call.operand(0);
  for (double &value : result.floats)
    value = roundTo(format, value);
  return one(std::move(result));
}

void mlir::mp::reference::addCastEvaluators(EvaluatorTable &table) {
  table["mp.cast"] = evaluateCast;
  table["mp.round"] = evaluateRound;
  for (StringRef spelling : {"aten._to_copy", "aten.to", "aten.type_as",
                             "prims.convert_element_type"})
    table[spelling] = evaluateCast;
}
