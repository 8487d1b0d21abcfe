//===- PlacementTest.cpp - the cut against all assignments ----------------===//

#include "passes/Placement/Frontier.h"
#include "passes/Placement/MinCut.h"
#include "passes/Placement/Problem.h"
#include "passes/Placement/Rest.h"
#include "passes/Placement/Solver.h"
#include "gtest/gtest.h"

#include <limits>
#include <random>
#include <set>

using namespace mlir::mp;

using Assignment = PlacementProblem::Assignment;
using Producer = PlacementProblem::Producer;

namespace {
/// Small random graphs of kernels, library calls and inputs, with a forward and
/// a backward half.
class RandomProblem {
public:
  explicit RandomProblem(unsigned seed) : random(seed) {
    int steps = pick(3, 8);
    for (int i = 0, inputs = pick(1, 3); i < inputs; ++i)
      addInput();
    for (int i = 0; i < steps; ++i)
      addStep(i, i > steps / 2);
    addResults();
  }

  PlacementProblem problem;

private:
  struct Made {
    int value;
    int64_t size;
    bool isBackward;
  };

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  Storage anyStorage() { return chance(50) ? Storage::High : Storage::Low; }

  void addInput() {
    PlacementProblem::Value value;
    value.producer = Producer::Input;
    value.given = anyStorage();
    int64_t size = pick(1, 50);
    value.narrow = value.widen = 6 * size + pick(0, 6);
    made.push_back({problem.addValue(value), size, false});
  }

  void addStep(int kernel, bool isBackward) {
    bool isCall = chance(40);
    int call = -1;
    if (isCall) {
      PlacementProblem::Call choice{pick(0, 300), pick(0, 120), {}};
      if (chance(33))
        choice.fixed = Storage::Low;
      call = problem.addCall(choice);
    }
    std::vector<Made> inputs = made;
    std::shuffle(inputs.begin(), inputs.end(), random);
    inputs.resize(std::min<size_t>(inputs.size(), pick(1, 3)));
    for (const Made &input : inputs)
      for (int ports = isCall ? 1 : pick(1, 2); ports > 0; --ports)
        addPort(input, kernel, call, isBackward);
    for (int results = pick(1, 2); results > 0; --results)
      addValue(call, isBackward);
  }

  void addPort(const Made &input, int kernel, int call, bool isBackward) {
    PlacementProblem::Port port;
    port.value = input.value;
    port.kernel = kernel;
    port.call = call;
    port.readHigh = 4 * input.size;
    port.readLow = 2 * input.size;
    port.isKept = isBackward && !input.isBackward;
    if (call < 0 && chance(40))
      port.fixed = anyStorage();
    if (chance(50))
      port.noise = pick(0, 3);
    port.followsResult = chance(20);
    problem.addPort(port);
  }

  void addValue(int call, bool isBackward) {
    int64_t size = pick(1, 50);
    PlacementProblem::Value value;
    value.producer = call < 0 ? Producer::Fused : Producer::External;
    value.owner = call;
    value.hasFreeResult = call >= 0 && chance(50);
    value.isPinned = value.hasFreeResult && chance(20);
    value.storeHigh = 4 * size;
    value.storeLow = 2 * size;
    value.narrow = value.widen = 6 * size + 3;
    int64_t memory = pick(0, 2);
    value.keepHigh = 4 * size * memory;
    value.keepLow = 2 * size * memory;
    made.push_back({problem.addValue(value), size, isBackward});
  }

  void addResults() {
    for (int i = 0; i < 2; ++i) {
      PlacementProblem::Port port;
      port.value = made[pick(0, made.size() - 1)].value;
      port.fixed = anyStorage();
      problem.addPort(port);
    }
  }

  std::mt19937 random;
  std::vector<Made> made;
};

/// The best of all assignments, by trying each.
std::optional<int64_t> bruteForce(const PlacementProblem &problem,
                                  double noisePrice) {
  std::vector<Storage *> choices;
  Assignment assignment;
  assignment.calls.resize(problem.getCalls().size());
  assignment.ports.resize(problem.getPorts().size());
  assignment.results.resize(problem.getValues().size());
  for (auto [call, storage] : llvm::zip(problem.getCalls(), assignment.calls)) {
    storage = call.fixed.value_or(Storage::High);
    if (!call.fixed)
      choices.push_back(&storage);
  }
  for (auto [port, storage] : llvm::zip(problem.getPorts(), assignment.ports)) {
    storage = port.fixed.value_or(Storage::High);
    if (!port.fixed && port.call < 0)
      choices.push_back(&storage);
  }
  for (auto [value, storage] :
       llvm::zip(problem.getValues(), assignment.results)) {
    storage = value.given;
    if (value.hasFreeResult)
      choices.push_back(&storage);
  }
  if (choices.size() > 16)
    return -1; // too many to try
  std::optional<int64_t> best;
  for (unsigned bits = 0; bits < 1u << choices.size(); ++bits) {
    for (auto [i, choice] : llvm::enumerate(choices))
      *choice = bits >> i & 1 ? Storage::Low : Storage::High;
    for (auto [port, storage] : llvm::zip(problem.getPorts(), assignment.ports))
      if (port.call >= 0)
        storage = assignment.calls[port.call];
    for (auto [value, storage] :
         llvm::zip(problem.getValues(), assignment.results))
      if (value.producer == Producer::External && !value.hasFreeResult)
        storage = assignment.calls[value.owner];
    std::optional<int64_t> cost = problem.costOf(assignment, noisePrice);
    if (cost && (!best || *cost < *best))
      best = cost;
  }
  return best;
}

TEST(MinCut, IsTheCheapestOfTwoPaths) {
  MinCut cut;
  MinCut::Node a = cut.addNode(), b = cut.addNode();
  cut.addEdge(MinCut::kSource, a, 5);
  cut.addEdge(a, b, 3);
  cut.addEdge(b, MinCut::kSink, 4);
  EXPECT_EQ(cut.solve(), 3);
  EXPECT_TRUE(cut.isOnSourceSide(a));
  EXPECT_FALSE(cut.isOnSourceSide(b));
}

TEST(MinCut, PrefersTheSourceAmongEquals) {
  MinCut cut;
  MinCut::Node a = cut.addNode();
  cut.addEdge(MinCut::kSource, a, 2);
  cut.addEdge(a, MinCut::kSink, 2);
  EXPECT_EQ(cut.solve(), 2);
  EXPECT_TRUE(cut.isOnSourceSide(a));
}

TEST(Placement, CutEqualsBruteForce) {
  int tried = 0, infeasible = 0;
  for (unsigned seed = 0; tried < 1500; ++seed) {
    RandomProblem random(seed);
    double price = seed % 3 * 7;
    std::optional<int64_t> best = bruteForce(random.problem, price);
    if (best == -1)
      continue;
    ++tried;
    auto assignment = random.problem.solve(price);
    ASSERT_EQ(assignment.has_value(), best.has_value()) << "seed " << seed;
    if (!best) {
      ++infeasible;
      continue;
    }
    EXPECT_EQ(assignment->cost, *best) << "seed " << seed;
    EXPECT_EQ(random.problem.costOf(*assignment, price), best)
        << "seed " << seed;
  }
  // The generator must not make only contradictions.
  EXPECT_LT(infeasible, tried / 2);
}

TEST(Placement, PartsEqualTheWhole) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProblem random(seed);
    auto whole = random.problem.solve(0);
    std::optional<Solution> parts = solveWithin(random.problem, 1e9);
    ASSERT_EQ(whole.has_value(), parts.has_value()) << "seed " << seed;
    if (whole) {
      EXPECT_EQ(parts->bytes, whole->cost) << "seed " << seed;
    }
  }
}

TEST(Placement, KeepsTheBudget) {
  int bounded = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProblem random(seed);
    std::optional<Solution> free = solveWithin(random.problem, 1e9);
    if (!free)
      continue;
    double budget = free->noise / 2;
    std::optional<Solution> solution = solveWithin(random.problem, budget);
    ASSERT_TRUE(solution.has_value());
    double least = random.problem.noiseOf(*random.problem.solve(1e6));
    EXPECT_LE(solution->noise, std::max(budget, least)) << "seed " << seed;
    EXPECT_GE(solution->bytes, free->bytes) << "seed " << seed;
    bounded += solution->noise < free->noise;
  }
  EXPECT_GT(bounded, 20);
}

// Of a large value that is kept, a reader may read a few elements only.
TEST(Placement, KeepsTheBudgetWhereAReadSavesMoreThanItsBytes) {
  PlacementProblem problem;
  PlacementProblem::Value value;
  value.storeHigh = value.keepHigh = 4'000'000;
  value.storeLow = value.keepLow = 2'000'000;
  PlacementProblem::Port port;
  port.value = problem.addValue(value);
  port.kernel = 0;
  port.readHigh = 4;
  port.readLow = 2;
  port.noise = 1;
  port.isKept = true;
  problem.addPort(port);
  EXPECT_EQ(solveWithin(problem, 1)->noise, 1);
  EXPECT_EQ(solveWithin(problem, 0.5)->noise, 0);
}

void expectEqual(const Assignment &a, const Assignment &b, unsigned seed) {
  EXPECT_EQ(a.cost, b.cost) << "seed " << seed;
  EXPECT_EQ(a.calls, b.calls) << "seed " << seed;
  EXPECT_EQ(a.ports, b.ports) << "seed " << seed;
  EXPECT_EQ(a.results, b.results) << "seed " << seed;
}

/// A value that only one port reads.
void addLone(PlacementProblem &problem, int64_t bytes, double noise) {
  PlacementProblem::Value value;
  value.storeHigh = bytes;
  value.storeLow = 0;
  PlacementProblem::Port port;
  port.value = problem.addValue(value);
  port.kernel = port.value;
  port.noise = noise;
  problem.addPort(port);
}

// Two values of one price: the hull has no vertex between both and none.
TEST(Rest, IsSpentOnWhatSavesMostForItsNoise) {
  PlacementProblem problem;
  addLone(problem, 30, 3);
  addLone(problem, 30, 3);
  addLone(problem, 5, 1);
  addLone(problem, 1, 1);
  std::optional<Solution> vertex = solveWithin(problem, 4.5);
  ASSERT_TRUE(vertex.has_value());
  EXPECT_EQ(vertex->noise, 0);
  Solution spent = spendRest(problem, *vertex, 4.5);
  EXPECT_EQ(spent.noise, 4);
  EXPECT_EQ(spent.bytes, vertex->bytes - 35);
  EXPECT_EQ(spendRest(problem, *vertex, 0.5).noise, 0);
}

TEST(Rest, KeepsTheBudgetAndNeverCostsMore) {
  int spent = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProblem random(seed);
    std::optional<Solution> free = solveWithin(random.problem, 1e9);
    if (!free)
      continue;
    for (double share : {0.2, 0.5, 0.8}) {
      double budget = share * free->noise;
      Solution vertex = *solveWithin(random.problem, budget);
      Solution more = spendRest(random.problem, vertex, budget);
      std::optional<int64_t> bytes = random.problem.costOf(more.assignment, 0);
      ASSERT_TRUE(bytes.has_value()) << "seed " << seed;
      EXPECT_EQ(more.bytes, *bytes) << "seed " << seed;
      EXPECT_EQ(more.noise, random.problem.noiseOf(more.assignment));
      EXPECT_LE(more.noise, std::max(budget, vertex.noise)) << "seed " << seed;
      EXPECT_LE(more.bytes, vertex.bytes) << "seed " << seed;
      EXPECT_GE(more.bytes, free->bytes) << "seed " << seed;
      spent += more.bytes < vertex.bytes;
    }
  }
  EXPECT_GT(spent, 20);
}

TEST(MinCut, RefusesAContradiction) {
  MinCut cut;
  MinCut::Node a = cut.addNode(), b = cut.addNode();
  cut.addEdge(MinCut::kSource, a, MinCut::kInfinite);
  cut.addEdge(a, b, MinCut::kInfinite);
  cut.addEdge(b, MinCut::kSink, MinCut::kInfinite);
  EXPECT_GE(cut.solve(), MinCut::kInfinite);
}

TEST(Placement, SolutionsNestInThePrice) {
  int different = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProblem random(seed);
    auto lower = random.problem.solve(1), higher = random.problem.solve(60);
    if (!lower)
      continue;
    for (double price : {2.0, 9.0, 30.0}) {
      auto alone = random.problem.solve(price);
      auto between = random.problem.solve(price, {&*lower}, {&*higher});
      ASSERT_TRUE(alone && between) << "seed " << seed;
      expectEqual(*alone, *between, seed);
    }
    different += lower->ports != higher->ports;
  }
  EXPECT_GT(different, 100);
}

TEST(Frontier, FallsInBytesAndGrowsInNoise) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  int bent = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomProblem random(seed);
    Frontier frontier(random.problem);
    const Solution *last = frontier.within(0);
    if (!last)
      continue;
    expectEqual(last->assignment, solveWithin(random.problem, 0)->assignment,
                seed);
    double most = solveWithin(random.problem, kUnlimited)->noise;
    std::set<double> noises{last->noise};
    for (double share : {0.1, 0.3, 0.6, 1.0}) {
      const Solution *next = frontier.within(share * most);
      EXPECT_LE(next->bytes, last->bytes) << "seed " << seed;
      EXPECT_GE(next->noise, last->noise) << "seed " << seed;
      noises.insert(next->noise);
      last = next;
    }
    expectEqual(frontier.within(kUnlimited)->assignment,
                solveWithin(random.problem, kUnlimited)->assignment, seed);
    bent += noises.size() > 2;
  }
  EXPECT_GT(bent, 50);
}

TEST(Frontier, DoesNotDependOnTheOrderOfBudgets) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    RandomProblem random(seed);
    Frontier frontier(random.problem);
    if (!frontier.within(1e9))
      continue;
    for (double budget : {3.0, 0.0, 7.0, 1.0, 5.0, 2.0})
      expectEqual(frontier.within(budget)->assignment,
                  solveWithin(random.problem, budget)->assignment, seed);
  }
}

TEST(Frontier, TakesHintsFromANarrowerProblem) {
  int freed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomProblem random(seed);
    Frontier narrower(random.problem);
    const Solution *chosen = narrower.within(2);
    if (!chosen)
      continue;
    PlacementProblem wider = random.problem;
    for (auto [i, port] : llvm::enumerate(random.problem.getPorts()))
      if (port.fixed == Storage::High && i % 2)
        wider.releasePort(i);
    Frontier hinted(wider, &narrower), alone(wider);
    for (double price : {chosen->noisePrice, 0.0, 3.0, 40.0})
      expectEqual(hinted.at(price)->assignment, alone.at(price)->assignment,
                  seed);
    double least = alone.at(1e6)->noise;
    EXPECT_LE(hinted.withinNear(2, chosen->noisePrice)->noise,
              std::max(2.0, least))
        << "seed " << seed;
    freed += hinted.at(0)->bytes < narrower.at(0)->bytes;
  }
  EXPECT_GT(freed, 100);
}

TEST(Placement, TellsWhatIsKept) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomProblem random(seed);
    auto solution = random.problem.solve(0);
    if (!solution)
      continue;
    int64_t kept = 0;
    for (size_t i = 0; i < random.problem.getValues().size(); ++i) {
      const PlacementProblem::Value &value = random.problem.getValues()[i];
      std::set<Storage> types;
      for (auto [port, storage] :
           llvm::zip(random.problem.getPorts(), solution->ports))
        if (port.value == int(i) && port.isKept)
          types.insert(storage);
      kept += types.count(Storage::High) * value.keepHigh +
              types.count(Storage::Low) * value.keepLow;
    }
    EXPECT_EQ(random.problem.keptCostOf(*solution), kept) << "seed " << seed;
  }
}
} // namespace
