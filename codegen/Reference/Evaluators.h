//===- Evaluators.h - the evaluators of each family ------------*- C++ -*-===//

#ifndef CODEGEN_REFERENCE_EVALUATORS_H
#define CODEGEN_REFERENCE_EVALUATORS_H

#include "codegen/Reference/Call.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::mp::reference {

/// Evaluators by operator: "mp.cast" or "aten.add"; an overload that differs
/// from the rest of its operator has an entry of its own ("aten.max.dim").
using EvaluatorTable = llvm::StringMap<Evaluator>;

void addCastEvaluators(EvaluatorTable &table);
void addViewEvaluators(EvaluatorTable &table);
void addMovementEvaluators(EvaluatorTable &table);
void addPointwiseEvaluators(EvaluatorTable &table);
void addReductionEvaluators(EvaluatorTable &table);
void addMatmulEvaluators(EvaluatorTable &table);
void addNormEvaluators(EvaluatorTable &table);
void addBackwardEvaluators(EvaluatorTable &table);
void addAttentionEvaluators(EvaluatorTable &table);
void addUpdateEvaluators(EvaluatorTable &table);

/// The shape that the two broadcast to; fails the call when they do not.
Shape broadcastShapes(Call &call, ArrayRef<int64_t> a, ArrayRef<int64_t> b);

/// A float operator's evaluator has one result in most cases.
std::vector<Tensor> one(Tensor result);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_EVALUATORS_H
