//===- PinRules.h - the tables behind mp-pin --------------------*- C++ -*-===//

#ifndef MP_PASSES_PINS_PINRULES_H
#define MP_PASSES_PINS_PINRULES_H

#include "dialect/IR/Pins.h"

namespace mlir::mp {

/// One of the two half formats, and where it ends.
struct HalfFormat {
  llvm::StringRef name;
  double largest;        ///< the largest finite number
  double overflow;       ///< what is at least as large becomes infinite
  double smallestNormal; ///< below it, bits are lost one by one
  unsigned precision;    ///< bits of the significand, with the implicit one

  bool isF16() const { return precision == 11; }
  /// Integers up to here are all exact.
  double exactIntegers() const { return 1 << precision; }
  /// Half the step at 1: the relative error of a rounding.
  double unitRoundoff() const { return 1.0 / (1 << precision); }
  /// The distance of neighbours near `magnitude`.
  double stepAt(double magnitude) const;
  /// True if a finite `number` becomes infinite.
  bool overflows(double number) const;
};

const HalfFormat &halfFormat(bool isF16);

/// Against which formats a rule guards.
enum class Halves { F16 = 1, BF16 = 2, Both = 3 };

enum class PinRule {
#define MP_PIN_RULE(ID, NAME, HALVES, TEXT) ID,
#include "passes/Pins/PinRules.def"
};

llvm::StringRef pinRuleName(PinRule rule);
llvm::StringRef pinRuleText(PinRule rule);
bool guards(PinRule rule, const HalfFormat &half);

/// What of an operator a row pins.
enum class PinPart { Result, Operands, Both, Vectors };

struct PinOpRow {
  llvm::StringRef name;
  PinRule rule;
  PinPart part;
  double magnitude; ///< where the reason quotes the step of the format
  llvm::SmallVector<int64_t, 4> indices;
};

/// The rows of an operator ("aten.exp.default").
llvm::ArrayRef<PinOpRow> pinRowsOf(llvm::StringRef callee);

/// The part that an operator plays in the patterns of detectors.
enum class PinRole {
  None,
  Add,
  Subtract,
  Multiply,
  Divide,
  Power,
  Square,
  Inverse,
  InverseRoot,
  Root,
  Logarithm,
  Exponential,
  Angle,       ///< cos and sin
  Blend,       ///< lerp
  Clamp,       ///< of numbers in `min` and `max`
  Mean,        ///< a mean over dimensions
  Sum,         ///< a sum over dimensions
  Statistics,  ///< variances
  Largest,     ///< the largest element over dimensions
  Probability, ///< softmax, sigmoid
  Counting,    ///< arange and the like
  Fill,        ///< puts numbers from `args` among the elements
  Choice,      ///< decides an index by order: topk, argmax
  Comparison,  ///< decides a truth value
  LookupGradient,
};
inline constexpr size_t kNumPinRoles = size_t(PinRole::LookupGradient) + 1;

PinRole pinRoleOf(Operation *op);

} // namespace mlir::mp

#endif // MP_PASSES_PINS_PINRULES_H
