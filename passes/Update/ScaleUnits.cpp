//===- ScaleUnits.cpp - units of measure for the loss scale ---------------===//

#include "passes/Update/ScaleUnits.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::mp;

Unit mlir::mp::multiply(const Unit &left, const Unit &right,
                        const Fraction &exponent) {
  Unit product;
  const Unit::Power *a = left.powers.begin(), *b = right.powers.begin();
  while (a != left.powers.end() || b != right.powers.end()) {
    bool takesLeft = b == right.powers.end() ||
                     (a != left.powers.end() && a->first <= b->first);
    bool takesRight = a == left.powers.end() ||
                      (b != right.powers.end() && b->first <= a->first);
    unsigned symbol = takesLeft ? a->first : b->first;
    Fraction sum(0, 1);
    if (takesLeft)
      sum = sum + (a++)->second;
    if (takesRight)
      sum = sum + (b++)->second * exponent;
    if (sum != Fraction(0, 1))
      product.powers.push_back({symbol, sum});
  }
  return product;
}

Unit ScaleUnits::newScale() {
  scales.push_back(true);
  return Unit{{{unsigned(scales.size() - 1), Fraction(1, 1)}}};
}

Unit ScaleUnits::newUnknown() {
  scales.push_back(false);
  return Unit{{{unsigned(scales.size() - 1), Fraction(1, 1)}}};
}

Unit ScaleUnits::resolve(const Unit &unit) const {
  Unit current = unit;
  // A solution may name unknowns that were solved later.
  while (true) {
    const auto *solved =
        llvm::find_if(current.powers, [&](const Unit::Power &power) {
          return solutions.contains(power.first);
        });
    if (solved == current.powers.end())
      return current;
    auto [symbol, exponent] = *solved;
    Unit rest = current;
    rest.powers.erase(rest.powers.begin() + (solved - current.powers.begin()));
    current = multiply(rest, solutions.find(symbol)->second, exponent);
  }
}

bool ScaleUnits::unify(const Unit &left, const Unit &right) {
  Unit difference = resolve(multiply(left, right, Fraction(-1, 1)));
  const auto *unknown =
      llvm::find_if(difference.powers, [&](const Unit::Power &power) {
        return !scales[power.first];
      });
  if (unknown == difference.powers.end())
    return difference.isNone();
  auto [symbol, exponent] = *unknown;
  difference.powers.erase(difference.powers.begin() +
                          (unknown - difference.powers.begin()));
  solutions[symbol] = multiply({}, difference, Fraction(-1, 1) / exponent);
  return true;
}

bool ScaleUnits::isKnown(const Unit &unit) const {
  return llvm::all_of(unit.powers, [&](const Unit::Power &power) {
    return scales[power.first];
  });
}
