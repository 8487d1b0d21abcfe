//===- Records.h - what a module claims to have changed --------*- C++ -*-===//

#ifndef MP_PASSES_CHECK_RECORDS_H
#define MP_PASSES_CHECK_RECORDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::mp::check {

/// An applied rewrite of `mp.rewrites`.
struct Record {
  StringRef rule, contract;
  int64_t node;
  int64_t operand;             ///< -1 if it names none
  FloatType half;              ///< null if it names none
  bool keepsResult;            ///< it says that the result stays f32
  ArrayRef<int64_t> unrounded; ///< operands that it says are not rounded
};

/// The applied entries that `after` has beyond those of `before`. Emits an
/// error for an entry that cannot be read.
FailureOr<SmallVector<Record>> newRecords(func::FuncOp before,
                                          func::FuncOp after);

/// The contract that a rule needs: "strict" unless the check knows it for one
/// that changes values.
StringRef contractFor(StringRef rule);

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_RECORDS_H
