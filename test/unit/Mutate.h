//===- Mutate.h - rewrites that a pass must not do -------------*- C++ -*-===//

#ifndef TEST_UNIT_MUTATE_H
#define TEST_UNIT_MUTATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::mp {

/// Kinds of edits that are wrong unless by chance.
enum class Mutation {
  DropRounding,     ///< readers of a narrowing and widening get the input
  ExchangeHalves,   ///< a rounding to f16 becomes one to bf16, or the reverse
  MergeRoundings,   ///< two roundings in a row become the second one
  MoveOverOperator, ///< a narrowing moves before arithmetic or a reduction
  RoundOperand,     ///< an operand gets a rounding that was not there
  ReplaceOperand,   ///< an operand becomes another value of its type
};
constexpr int kNumMutations = 6;

/// Applies `mutation` to the place of `func` that `seed` picks; false if there
/// is none. The function stays valid.
bool mutate(func::FuncOp func, Mutation mutation, uint64_t seed);

} // namespace mlir::mp

#endif // TEST_UNIT_MUTATE_H
