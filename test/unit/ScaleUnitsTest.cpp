//===- ScaleUnitsTest.cpp - solving for units of measure ------------------===//
//
// The solver takes equations one by one; the witness takes them as one matrix
// of exponents and brings it to reduced row echelon form.
//
//===----------------------------------------------------------------------===//

#include "passes/Update/ScaleUnits.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <optional>
#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {
using Row = std::vector<Fraction>;

/// "left = right", of units over symbols that count from 0.
struct Equation {
  Unit left, right;
};

/// Random systems over `numScales` scales, which come first, and `numUnknowns`
/// unknowns.
struct Units : testing::Test {
  static constexpr unsigned numScales = 3, numUnknowns = 5;
  static constexpr unsigned numSymbols = numScales + numUnknowns;
  /// Seeded anew for each system.
  std::mt19937_64 random{seedOf(0)};
  static uint64_t seedOf(uint64_t number) { return number; }

  unsigned below(unsigned end) { return random() % end; }
  Fraction exponent() { return Fraction(int64_t(below(9)) - 4, 2); }

  /// A product of up to three powers of the first `end` symbols.
  Unit randomUnit(unsigned end = numSymbols) {
    Unit unit;
    for (unsigned i = 0, count = below(4); i != count; ++i)
      unit = multiply(unit, Unit{{{below(end), Fraction(1, 1)}}}, exponent());
    return unit;
  }
  Equation randomEquation() { return {randomUnit(), randomUnit()}; }

  static ScaleUnits makeUnits() {
    ScaleUnits units;
    for (unsigned i = 0; i != numScales; ++i)
      units.newScale();
    for (unsigned i = 0; i != numUnknowns; ++i)
      units.newUnknown();
    return units;
  }
};
} // namespace

static Unit symbol(unsigned number) { return Unit{{{number, Fraction(1, 1)}}}; }

static bool areEqual(const Unit &a, const Unit &b) {
  return llvm::equal(a.powers, b.powers, [](auto &x, auto &y) {
    return x.first == y.first && x.second == y.second;
  });
}

static std::string textOf(const Unit &unit) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Unit::Power &power : unit.powers)
    os << 's' << power.first << '^' << power.second << ' ';
  return text;
}

/// The units of all unknowns, as far as they are solved.
static std::vector<Unit> solutionOf(const ScaleUnits &units) {
  std::vector<Unit> solution;
  for (unsigned i = Units::numScales; i != Units::numSymbols; ++i)
    solution.push_back(units.resolve(symbol(i)));
  return solution;
}

static void expectEqual(const std::vector<Unit> &a,
                        const std::vector<Unit> &b) {
  for (auto [x, y] : llvm::zip_equal(a, b))
    EXPECT_TRUE(areEqual(x, y)) << textOf(x) << "and " << textOf(y);
}

//===----------------------------------------------------------------------===//
// The witness
//===----------------------------------------------------------------------===//

namespace {
/// Equations as rows of exponents whose products are 1: those of the unknowns,
/// then those of the scales.
class Matrix {
public:
  void add(const Equation &equation) {
    Row row(Units::numSymbols, Fraction(0, 1));
    auto count = [&](const Unit &unit, const Fraction &sign) {
      for (const Unit::Power &power : unit.powers) {
        Fraction &cell = row[columnOf(power.first)];
        cell = cell + power.second * sign;
      }
    };
    count(equation.left, Fraction(1, 1));
    count(equation.right, Fraction(-1, 1));
    rows.push_back(row);
  }

  /// Reduced row echelon form over the columns of the unknowns.
  void reduce() {
    size_t done = 0;
    for (unsigned column = 0; column != Units::numUnknowns; ++column) {
      auto pivot =
          std::find_if(rows.begin() + done, rows.end(), [&](const Row &row) {
            return row[column] != Fraction(0, 1);
          });
      if (pivot == rows.end())
        continue;
      std::swap(rows[done], *pivot);
      Fraction factor = Fraction(1, 1) / rows[done][column];
      for (Fraction &cell : rows[done])
        cell = cell * factor;
      for (size_t i = 0; i != rows.size(); ++i)
        if (i != done)
          clear(rows[i], column, rows[done]);
      ++done;
    }
  }

  /// True if no row says that a product of scales alone is 1. Reduced.
  bool isConsistent() const {
    return llvm::none_of(rows, [](const Row &row) {
      return firstUnknown(row) == Units::numUnknowns &&
             llvm::any_of(row, [](const Fraction &cell) {
               return cell != Fraction(0, 1);
             });
    });
  }

  /// The unit of unknown number `unknown`, if the equations say. Reduced.
  std::optional<Unit> valueOf(unsigned unknown) const {
    for (const Row &row : rows) {
      if (firstUnknown(row) != unknown)
        continue;
      Unit value;
      for (unsigned column = unknown + 1; column != row.size(); ++column) {
        if (row[column] == Fraction(0, 1))
          continue;
        if (column < Units::numUnknowns)
          return std::nullopt;
        value.powers.push_back(
            {column - Units::numUnknowns, row[column] * Fraction(-1, 1)});
      }
      return value;
    }
    return std::nullopt;
  }

private:
  static unsigned columnOf(unsigned symbol) {
    return symbol < Units::numScales ? Units::numUnknowns + symbol
                                     : symbol - Units::numScales;
  }
  static unsigned firstUnknown(const Row &row) {
    unsigned column = 0;
    while (column != Units::numUnknowns && row[column] == Fraction(0, 1))
      ++column;
    return column;
  }
  /// Makes `from[column]` zero by `row`, which has a 1 there.
  static void clear(Row &from, unsigned column, const Row &row) {
    Fraction factor = from[column];
    for (auto [cell, other] : llvm::zip_equal(from, row))
      cell = cell - other * factor;
  }

  std::vector<Row> rows;
};
} // namespace

//===----------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------===//

TEST_F(Units, FormAGroupWithRationalPowers) {
  for (unsigned seed = 0; seed != 500; ++seed) {
    random.seed(seed);
    Unit a = randomUnit(), b = randomUnit(), c = randomUnit();
    Fraction p = exponent(), q = exponent();
    EXPECT_TRUE(areEqual(multiply(a, b), multiply(b, a)));
    EXPECT_TRUE(
        areEqual(multiply(multiply(a, b), c), multiply(a, multiply(b, c))));
    EXPECT_TRUE(areEqual(multiply(a, Unit()), a));
    EXPECT_TRUE(multiply(a, a, Fraction(-1, 1)).isNone());
    EXPECT_TRUE(
        areEqual(multiply(multiply({}, a, p), a, q), multiply({}, a, p + q)));
    for (const Unit::Power &power : multiply(a, b, p).powers)
      EXPECT_NE(power.second, Fraction(0, 1));
  }
}

//===----------------------------------------------------------------------===//
// Any equations
//===----------------------------------------------------------------------===//

// Accepted is exactly what is consistent with what was accepted before, and
// known is exactly what has one solution.
TEST_F(Units, AgreeWithTheMatrix) {
  unsigned refused = 0, known = 0, open = 0;
  for (unsigned seed = 0; seed != 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random.seed(seed);
    ScaleUnits units = makeUnits();
    Matrix accepted;
    for (unsigned i = 0, count = below(10); i != count; ++i) {
      Equation equation = randomEquation();
      Matrix extended = accepted;
      extended.add(equation);
      extended.reduce();
      std::vector<Unit> before = solutionOf(units);
      bool holds = units.unify(equation.left, equation.right);
      ASSERT_EQ(holds, extended.isConsistent())
          << textOf(equation.left) << "= " << textOf(equation.right);
      if (holds) {
        accepted = extended;
      } else {
        expectEqual(solutionOf(units), before);
        ++refused;
      }
    }
    for (unsigned i = 0; i != numUnknowns; ++i) {
      Unit unit = units.resolve(symbol(numScales + i));
      std::optional<Unit> value = accepted.valueOf(i);
      ASSERT_EQ(units.isKnown(unit), value.has_value()) << textOf(unit);
      if (value)
        EXPECT_TRUE(areEqual(unit, *value))
            << textOf(unit) << "and " << textOf(*value);
      (value ? known : open) += 1;
    }
  }
  EXPECT_GT(refused, 300u);
  EXPECT_GT(known, 300u);
  EXPECT_GT(open, 300u);
}

TEST_F(Units, EachEquationHoldsFromThenOn) {
  for (unsigned seed = 0; seed != 500; ++seed) {
    random.seed(seed);
    ScaleUnits units = makeUnits();
    std::vector<Equation> accepted;
    for (unsigned i = 0; i != 8; ++i) {
      Equation equation = randomEquation();
      if (units.unify(equation.left, equation.right))
        accepted.push_back(equation);
      for (const Equation &old : accepted)
        ASSERT_TRUE(areEqual(units.resolve(old.left), units.resolve(old.right)))
            << "seed " << seed;
      Unit unit = randomUnit();
      EXPECT_TRUE(
          areEqual(units.resolve(unit), units.resolve(units.resolve(unit))));
    }
    // Once more, they say nothing new.
    std::vector<Unit> solution = solutionOf(units);
    for (const Equation &old : accepted)
      EXPECT_TRUE(units.unify(old.left, old.right));
    expectEqual(solutionOf(units), solution);
  }
}

//===----------------------------------------------------------------------===//
// Equations that a solution satisfies
//===----------------------------------------------------------------------===//

namespace {
/// Equations that hold for a solution that was drawn first.
struct SolvedUnits : Units {
  std::vector<Unit> solution; ///< per unknown
  std::vector<Equation> equations;

  /// `unit` under the solution.
  Unit valueOf(const Unit &unit) const {
    Unit value;
    for (const Unit::Power &power : unit.powers)
      value =
          multiply(value,
                   power.first < numScales ? symbol(power.first)
                                           : solution[power.first - numScales],
                   power.second);
    return value;
  }
  /// A random one, made right by a product of scales.
  Equation trueEquation() {
    Equation equation = randomEquation();
    Unit error = multiply(valueOf(equation.left), valueOf(equation.right),
                          Fraction(-1, 1));
    return {equation.left, multiply(equation.right, error)};
  }
  void draw(unsigned seed, unsigned numEquations) {
    random.seed(seed);
    solution.clear();
    equations.clear();
    for (unsigned i = 0; i != numUnknowns; ++i)
      solution.push_back(randomUnit(numScales));
    for (unsigned i = 0; i != numEquations; ++i)
      equations.push_back(trueEquation());
  }
  bool areDetermined() const {
    Matrix matrix;
    for (const Equation &equation : equations)
      matrix.add(equation);
    matrix.reduce();
    return llvm::all_of(llvm::seq(numUnknowns), [&](unsigned i) {
      return matrix.valueOf(i).has_value();
    });
  }
  /// In a random order; the number of refusals.
  unsigned unifyAll(ScaleUnits &units) {
    std::shuffle(equations.begin(), equations.end(), random);
    return llvm::count_if(equations, [&](const Equation &equation) {
      return !units.unify(equation.left, equation.right);
    });
  }
};
} // namespace

TEST_F(SolvedUnits, TheOrderDoesNotMatter) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    draw(seed, below(9));
    std::array<bool, numUnknowns> wasKnown{};
    for (unsigned order = 0; order != 4; ++order) {
      ScaleUnits units = makeUnits();
      ASSERT_EQ(unifyAll(units), 0u);
      for (unsigned i = 0; i != numUnknowns; ++i) {
        Unit unit = units.resolve(symbol(numScales + i));
        bool isKnown = units.isKnown(unit);
        if (isKnown)
          EXPECT_TRUE(areEqual(unit, solution[i]));
        EXPECT_TRUE(order == 0 || isKnown == wasKnown[i]);
        wasKnown[i] = isKnown;
      }
    }
  }
}

// One gradient that is scaled once more than all others say.
TEST_F(SolvedUnits, AContradictionIsFoundInEveryOrder) {
  unsigned tried = 0;
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    draw(seed, 10);
    if (!areDetermined())
      continue;
    ++tried;
    Equation wrong = trueEquation();
    wrong.right = multiply(wrong.right, symbol(below(numScales)));
    equations.push_back(wrong);
    for (unsigned order = 0; order != 4; ++order) {
      ScaleUnits units = makeUnits();
      EXPECT_GE(unifyAll(units), 1u);
    }
  }
  EXPECT_GT(tried, 100u);
}
