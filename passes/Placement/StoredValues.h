//===- StoredValues.h - who reads what is stored ---------------*- C++ -*-===//
//
// A *root* is a value without its views, conversions and stores: what a
// placement gives one type, or two. Conversions between the wide type and the
// half type belong to the root, whoever stores the result.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_STOREDVALUES_H
#define MP_PASSES_PLACEMENT_STOREDVALUES_H

#include "passes/Placement/Fusion.h"

namespace mlir::mp {

/// One operand of an operation, seen from the root.
struct RootRead {
  Value root;
  /// The stored value that the reader's kernel loads.
  Value buffer;
  /// The root is rounded to the half type on its way to the reader.
  bool isRounded = false;
};

/// What `use` loads; std::nullopt if it is computed inside the reader's kernel
/// or is no float tensor.
std::optional<RootRead> readOf(OpOperand &use, const FusionEstimate &fusion);

/// The root of a value: its input through views, stores and conversions
/// between floats. `isRounded` becomes true if one of them rounds.
Value rootOf(Value value, bool &isRounded);

/// True for an operation that only stores, renames or converts its operand.
bool isCopy(Operation *op);

/// The half type of a function: that of most conversions and library calls;
/// null if it has none.
Type halfTypeOf(func::FuncOp func);

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_STOREDVALUES_H
