//===- ScaleUnits.h - units of measure for the loss scale -------*- C++ -*-===//
//
// A unit is a product of rational powers of symbols: loss scales, which are
// fixed, and unknowns, which are solved for as equations come in. Equations are
// linear in the exponents, so that solving one is a step of Gaussian
// elimination (Kennedy, "Relational parametricity and units of measure", 1997).
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_UPDATE_SCALEUNITS_H
#define MP_PASSES_UPDATE_SCALEUNITS_H

#include "mlir/Analysis/Presburger/Fraction.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::mp {

using presburger::Fraction;

/// A product of powers, by ascending symbol; no exponent is zero.
struct Unit {
  using Power = std::pair<unsigned, Fraction>;
  llvm::SmallVector<Power, 1> powers;

  /// True for plain numbers.
  bool isNone() const { return powers.empty(); }
};

/// left * right^exponent.
Unit multiply(const Unit &left, const Unit &right,
              const Fraction &exponent = Fraction(1, 1));

class ScaleUnits {
public:
  /// A loss scale.
  Unit newScale();
  /// A unit to be solved for.
  Unit newUnknown();

  /// `unit` as far as it is solved.
  Unit resolve(const Unit &unit) const;

  /// Makes both equal. False, and nothing is changed, if they cannot be.
  [[nodiscard]] bool unify(const Unit &left, const Unit &right);

  bool isScale(unsigned symbol) const { return scales[symbol]; }

  /// True if `unit`, resolved, is made of loss scales only.
  bool isKnown(const Unit &unit) const;

private:
  llvm::SmallVector<bool> scales;           ///< per symbol
  llvm::DenseMap<unsigned, Unit> solutions; ///< of unknowns
};

} // namespace mlir::mp

#endif // MP_PASSES_UPDATE_SCALEUNITS_H
