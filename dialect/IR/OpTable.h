//===- OpTable.h - precision facts of framework operators ------*- C++ -*-===//
//
// The one table behind PrecisionOpInterface. A row names an operator without
// its overload ("aten.mm") and says what kind of computation it is.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IR_OPTABLE_H
#define MP_DIALECT_IR_OPTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir::mp {

enum class OpKind {
  Unknown,     ///< no row: opaque, dtypes as traced
  View,        ///< renames elements of one operand; free
  Reshape,     ///< a view that keeps the order of the elements
  Movement,    ///< copies elements of its operands
  Gather,      ///< the same, but an integer or mask operand chooses which
  Sign,        ///< changes sign bits only: neg, abs
  Monotone,    ///< picks a value by order: relu, min, max
  Pointwise,   ///< elementwise arithmetic
  Reduction,   ///< sums and the like over some dimensions
  Scatter,     ///< accumulates into positions given by an index
  Norm,        ///< layer, group, batch, RMS norm and their backward
  Softmax,     ///< softmax, log_softmax and their backward
  Activation,  ///< gelu, silu, ... and their backward
  Loss,        ///< losses and their backward
  Matmul,      ///< contraction with a wide accumulator
  Convolution, ///< convolution with a wide accumulator
  Attention,   ///< scaled dot product attention and its backward
  Compare,     ///< a floating-point value decides a truth value
  Index,       ///< a floating-point value decides an index: argmax, topk, sort
  Rounding,    ///< floor, ceil, round, trunc, frac, sign, remainder
  Creation,    ///< makes a tensor from shapes and constants
  Random,      ///< draws random numbers; order matters
  Bitcast,     ///< reinterprets bits
  Shape,       ///< sizes and scalar arithmetic on them
  Effect,      ///< side effects: copy_, assertions, collectives
};

struct OpRow {
  llvm::StringRef name;
  OpKind kind;
};

/// The row of `callee` ("aten.mm.default"); null when the table has none.
const OpRow *lookupOpRow(llvm::StringRef callee);

/// The lower-case name of a kind, as reports print it.
llvm::StringRef stringifyOpKind(OpKind kind);

/// The kind of that name; none if there is none.
std::optional<OpKind> symbolizeOpKind(llvm::StringRef name);

/// Every kind, `Unknown` first.
llvm::ArrayRef<OpKind> allOpKinds();

/// "aten.mm" of "aten.mm.default".
llvm::StringRef stripOverload(llvm::StringRef callee);

inline bool isViewKind(OpKind kind) {
  return kind == OpKind::View || kind == OpKind::Reshape;
}

inline bool isDataMovementKind(OpKind kind) {
  return isViewKind(kind) || kind == OpKind::Movement || kind == OpKind::Gather;
}

/// True if the framework calls a library for the operation: operands and
/// results are in memory, whatever is fused around it.
inline bool isExternalKind(OpKind kind) {
  return kind == OpKind::Matmul || kind == OpKind::Convolution ||
         kind == OpKind::Attention;
}

inline bool isRoundingObserverKind(OpKind kind) {
  return kind == OpKind::Compare || kind == OpKind::Index ||
         kind == OpKind::Rounding || kind == OpKind::Bitcast ||
         kind == OpKind::Effect || kind == OpKind::Unknown;
}

/// True if a fuser computes the operation inside a generated kernel, so that
/// conversions next to it cost no memory traffic.
inline bool isFusibleKind(OpKind kind) {
  return kind == OpKind::Monotone || kind == OpKind::Pointwise ||
         kind == OpKind::Reduction || kind == OpKind::Norm ||
         kind == OpKind::Softmax || kind == OpKind::Activation ||
         kind == OpKind::Loss || kind == OpKind::Compare ||
         kind == OpKind::Rounding || kind == OpKind::Creation ||
         kind == OpKind::Random || kind == OpKind::Movement ||
         kind == OpKind::Gather || kind == OpKind::Sign;
}

} // namespace mlir::mp

#endif // MP_DIALECT_IR_OPTABLE_H
