//===- PinContext.h - what detectors share ----------------------*- C++ -*-===//
//
// A detector is a function that looks at the whole graph and pins what it
// knows. Detectors do not see each other's pins: evidence is a union.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PINS_PINCONTEXT_H
#define MP_PASSES_PINS_PINCONTEXT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Pins/Intervals.h"
#include "passes/Pins/PinMatch.h"

#include <array>
#include <vector>

namespace mlir::mp {

class MeasuredValues;

class PinContext {
public:
  /// `measured` may be null.
  PinContext(func::FuncOp func, const HalfFormat &half,
             const MeasuredValues *measured);

  /// Pins f32 in a part of `op`. `why` says what and how much; the reason opens
  /// with the operator and its shape. Nothing happens where no float is, where
  /// the rule guards the other half format, or where the rule pinned before.
  void pin(Operation *op, PinRule rule, PinWhere where, const Twine &why,
           ArrayRef<int64_t> indices = {});
  /// The same for the operation that makes `value`, through views and
  /// conversions; nothing for arguments.
  void pinResult(Value value, PinRule rule, const Twine &why);
  /// Pins the traced types of all of `op`.
  void keep(Operation *op, PinRule rule, const Twine &why);

  /// The operations of the function, without its terminator.
  auto operations() { return func.getBody().front().without_terminator(); }
  /// Those that play `role`, or are of `kind`, in order.
  ArrayRef<Operation *> withRole(PinRole role) const {
    return byRole[static_cast<size_t>(role)];
  }
  ArrayRef<Operation *> ofKind(OpKind kind) const {
    return byKind[static_cast<size_t>(kind)];
  }

  func::FuncOp func;
  const HalfFormat &half;
  const MeasuredValues *measured;
  const Intervals intervals;

private:
  // A detector that looked each operator up would cost as much as all others.
  std::array<std::vector<Operation *>, kNumPinRoles> byRole;
  std::array<std::vector<Operation *>, size_t(OpKind::Effect) + 1> byKind;

  void add(Operation *op, PinFormat format, PinRule rule, PinWhere where,
           const Twine &why, ArrayRef<int64_t> indices);
};

/// "bf16 steps by 0.0625 at 10".
std::string stepText(const HalfFormat &half, double magnitude);

#define MP_PIN_DETECTOR(FUNCTION) void FUNCTION(PinContext &context);
#include "passes/Pins/PinDetectors.def"

} // namespace mlir::mp

#endif // MP_PASSES_PINS_PINCONTEXT_H
