//===- Call.h - one operation with its argument values ---------*- C++ -*-===//
//
// What an evaluator sees: operand values, the operator's other arguments by
// schema name, and the types of the results. A wrong argument makes the call
// fail with a message; the value returned in its place is safe to compute with.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_REFERENCE_CALL_H
#define CODEGEN_REFERENCE_CALL_H

#include "codegen/Reference/Tensor.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace mlir::mp::reference {

class Call {
public:
  Call(Operation *op, ArrayRef<const Tensor *> operands);

  Operation *op() const { return operation; }
  unsigned numOperands() const { return operands.size(); }
  /// Operand `i`; fails when there is none.
  const Tensor &operand(unsigned i);
  /// Element type of result `i`.
  Type resultType(unsigned i = 0) const;

  // Arguments by name. One without a default fails when it is absent.
  bool has(StringRef name) const;
  int64_t integer(StringRef name);
  int64_t integer(StringRef name, int64_t absent);
  double number(StringRef name);
  double number(StringRef name, double absent);
  bool boolean(StringRef name, bool absent);
  StringRef text(StringRef name, StringRef absent);
  Shape integers(StringRef name);
  /// An argument that is a tensor: named in the arguments as "%k", or else
  /// operand `position`. Null when it is given as None or not at all.
  const Tensor *tensor(StringRef name, unsigned position);

  /// Dimension numbers, counted from the front. Checked against `rank`.
  int64_t dim(StringRef name, int64_t rank);
  int64_t dim(StringRef name, int64_t rank, int64_t absent);
  /// Sorted and distinct; all dimensions when absent or empty.
  Shape dims(StringRef name, int64_t rank);
  int64_t wrapDim(int64_t dim, int64_t rank);

  /// Records that the call cannot be evaluated. The first message stays.
  void fail(const Twine &message);
  /// Fails unless `condition` holds; returns it.
  bool require(bool condition, const Twine &message);
  bool failed() const { return !message.empty(); }
  llvm::Error takeError();

private:
  Attribute argument(StringRef name) const;
  int64_t toInteger(Attribute attr, StringRef name);

  Operation *operation;
  SmallVector<const Tensor *> operands;
  DictionaryAttr args;
  std::string message;
};

/// Evaluates one operation; one tensor for each result.
using Evaluator = std::vector<Tensor> (*)(Call &);

} // namespace mlir::mp::reference

#endif // CODEGEN_REFERENCE_CALL_H
