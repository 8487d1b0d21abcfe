//===- BudgetTest.cpp - the file of a budget, and its comparison ----------===//

#include "passes/Report/Budget.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {

/// Budgets with names that a file must quote.
class RandomBudget {
public:
  explicit RandomBudget(uint64_t seed) : random(seed) {}

  Budget budget() {
    Budget result;
    result.versions["mpopt"] = word();
    for (unsigned i = 0, end = below(4); i != end; ++i)
      result.graphs[word()] = graph();
    return result;
  }

  GraphFigures graph() {
    GraphFigures result;
    result.settings["numerics"] = word();
    result.total = figures();
    for (unsigned i = 0, end = below(4); i != end; ++i)
      if (Figures own = figures(); !own.empty())
        result.regions[word()] = own;
    return result;
  }

private:
  unsigned below(unsigned limit) { return random() % limit; }

  std::string word() {
    static constexpr StringRef parts[] = {"a",  "layers.*", "\"", "\\",
                                          "]",  "=",        "#",  "\n",
                                          "\t", "\x01",     "é",  " "};
    std::string text;
    for (unsigned i = 0, end = 1 + below(6); i != end; ++i)
      text += parts[below(std::size(parts))];
    return text;
  }

  Figures figures() {
    static constexpr StringRef names[] = {"casts", "cast_bytes", "rewrites",
                                          "saved_bytes"};
    Figures result;
    for (unsigned i = 0, end = below(5); i != end; ++i)
      result[names[below(std::size(names))].str()] = 1 + below(9);
    for (unsigned i = 0, end = below(3); i != end; ++i)
      result["pins." + quotedKey(word())] = 1 + below(9);
    return result;
  }

  std::mt19937_64 random;
};

std::string print(const Budget &budget) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printBudget(budget, os);
  return text;
}

TEST(Budget, FileKeepsEverything) {
  for (uint64_t seed = 0; seed != 500; ++seed) {
    Budget budget = RandomBudget(seed).budget();
    std::string text = print(budget);
    llvm::Expected<Budget> read = parseBudget(text, "file");
    ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError()) << text;
    EXPECT_EQ(print(*read), text);
    ASSERT_EQ(read->graphs.size(), budget.graphs.size());
    for (const auto &[name, graph] : budget.graphs) {
      ASSERT_TRUE(read->graphs.count(name)) << text;
      EXPECT_EQ(read->graphs[name].settings, graph.settings);
      EXPECT_EQ(read->graphs[name].total, graph.total);
      EXPECT_EQ(read->graphs[name].regions, graph.regions);
    }
  }
}

// Cut anywhere, a file is read or refused.
TEST(Budget, DamagedFilesEndInAnError) {
  for (uint64_t seed = 0; seed != 50; ++seed) {
    std::string text = print(RandomBudget(seed).budget());
    std::mt19937_64 random(seed);
    for (int trial = 0; trial != 50; ++trial) {
      std::string damaged = text.substr(0, random() % (text.size() + 1));
      if (!damaged.empty())
        damaged[random() % damaged.size()] = char(random());
      llvm::Expected<Budget> read = parseBudget(damaged, "file");
      if (!read)
        EXPECT_TRUE(
            StringRef(llvm::toString(read.takeError())).starts_with("file:"));
    }
  }
}

TEST(Budget, WorseOneWayIsBetterTheOther) {
  for (uint64_t seed = 0; seed != 300; ++seed) {
    RandomBudget random(seed);
    GraphFigures a = random.graph(), b = random.graph();
    auto forth = compareFigures("g", a, b, 0),
         back = compareFigures("g", b, a, 0);
    ASSERT_EQ(forth.size(), back.size());
    for (size_t i = 0; i != forth.size(); ++i) {
      EXPECT_EQ(forth[i].before, back[i].after);
      EXPECT_NE(forth[i].before, forth[i].after);
      EXPECT_EQ(forth[i].verdict == FigureVerdict::Worse,
                back[i].verdict == FigureVerdict::Better);
      EXPECT_EQ(forth[i].isNewRegion, back[i].isGoneRegion);
    }
    EXPECT_TRUE(compareFigures("g", a, a, 0).empty());
  }
}

FigureVerdict verdictOf(StringRef figure, int64_t before, int64_t after) {
  GraphFigures a, b;
  a.total[figure.str()] = before;
  b.total[figure.str()] = after;
  std::vector<FigureChange> changes = compareFigures("g", a, b, 0);
  return changes.size() == 1 ? changes.front().verdict : FigureVerdict::Neutral;
}

TEST(Budget, FewerPinsAreWorseAndMoreOfTheRest) {
  for (StringRef figure : {"casts", "cast_bytes", "dynamic_casts",
                           "saved_bytes", "dynamic_saves", "kinds.\"a\""})
    EXPECT_EQ(verdictOf(figure, 1, 2), FigureVerdict::Worse) << figure.str();
  EXPECT_EQ(verdictOf("pins.\"softmax\"", 2, 1), FigureVerdict::Worse);
  EXPECT_EQ(verdictOf("pins.\"softmax\"", 1, 2), FigureVerdict::Better);
  EXPECT_EQ(verdictOf("rewrites", 1, 2), FigureVerdict::Neutral);
}

TEST(Budget, ToleranceIsAShareOfTheFile) {
  GraphFigures a, b;
  a.total["casts"] = 100;
  for (auto [after, count] :
       {std::pair(102, 0), std::pair(103, 1), std::pair(99, 1)}) {
    b.total["casts"] = after;
    EXPECT_EQ(compareFigures("g", a, b, 0.02).size(), size_t(count)) << after;
  }
  a.total["casts"] = 0;
  EXPECT_EQ(compareFigures("g", a, b, 0.99).size(), 1u);
}

TEST(Budget, NumbersInPathsAreOneRegion) {
  EXPECT_EQ(regionPattern("layers.11.attn"), "layers.*.attn");
  EXPECT_EQ(regionPattern("a.0.experts.3"), "a.*.experts.*");
  EXPECT_EQ(regionPattern("conv1.x2"), "conv1.x2");
  EXPECT_EQ(regionPattern(""), "");
}

} // namespace
