//===- Unpinning.cpp - what pins cost a placement -------------------------===//

#include "passes/Report/Unpinning.h"
#include "dialect/Graph/Graph.h"
#include "passes/Report/CastReport.h"

#include <map>

using namespace mlir;
using namespace mlir::mp;

/// Pins that are solved without, each by itself.
static constexpr size_t kSinglePins = 8;

static void addWide(Operation *op, function_ref<bool(PinAttr)> isAbout,
                    SmallVectorImpl<HeldPin> &pins) {
  for (PinAttr pin : pinsOf(op))
    if (pin.getFormat() == PinFormat::fp32 && isAbout(pin))
      pins.push_back({op, pin});
}

static void addResultPins(OpResult result, SmallVectorImpl<HeldPin> &pins) {
  addWide(
      result.getOwner(),
      [&](PinAttr pin) { return pinsResult(pin, result.getResultNumber()); },
      pins);
}

SmallVector<HeldPin, 2> mlir::mp::pinsAt(const Placement::StoredValue &stored,
                                         const Placement::Port &port) {
  SmallVector<HeldPin, 2> pins;
  // What the reader gets, and each value that it is a copy of.
  for (Value value = port.use->get(); value.getDefiningOp();
       value = value.getDefiningOp()->getOperand(0)) {
    addResultPins(cast<OpResult>(value), pins);
    if (value == stored.root)
      break;
  }
  addWide(
      port.use->getOwner(),
      [&](PinAttr pin) {
        return pinsOperand(pin, port.use->getOperandNumber());
      },
      pins);
  return pins;
}

PinCosts::PinCosts(const PlacementSetup &setup, const Frontier &pinned,
                   const Solution &chosen, double budget)
    : setup(setup), placement(setup.getPlacement()), pinned(pinned),
      chosen(chosen), budget(budget) {
  addPorts();
  addCalls();
  heldBy.resize(numbers.size());
  for (auto [i, entry] : llvm::enumerate(held))
    for (int pin : entry.pins)
      heldBy[pin].push_back(i);
}

int PinCosts::numberOf(HeldPin pin) {
  return numbers.try_emplace(pin, numbers.size()).first->second;
}

void PinCosts::Held::release(PlacementProblem &problem) const {
  if (port >= 0)
    problem.releasePort(port);
  if (call >= 0)
    problem.releaseCall(call);
  if (result >= 0)
    problem.releaseResult(result);
}

void PinCosts::add(Held entry, ArrayRef<HeldPin> pins) {
  for (HeldPin pin : pins)
    entry.pins.push_back(numberOf(pin));
  if (!pins.empty())
    held.push_back(std::move(entry));
}

void PinCosts::addPorts() {
  const PlacementProblem &problem = placement.getProblem();
  for (const Placement::StoredValue &stored : placement.getValues()) {
    for (const Placement::Port &port : stored.ports)
      if (port.why == PortReason::Pinned) {
        Held entry;
        entry.port = port.port;
        add(std::move(entry), pinsAt(stored, port));
      }
    if (!problem.getValues()[stored.value].isPinned)
      continue;
    Held entry;
    entry.result = stored.value;
    SmallVector<HeldPin> pins;
    addResultPins(cast<OpResult>(stored.root), pins);
    add(std::move(entry), pins);
  }
}

void PinCosts::addCalls() {
  for (const Placement::OpenCall &open : placement.getOpenCalls()) {
    if (!open.isPinned || !open.cost.pays)
      continue;
    Held entry;
    entry.call = open.call;
    SmallVector<HeldPin> pins;
    addWide(open.op, [](PinAttr) { return true; }, pins);
    add(std::move(entry), pins);
  }
}

Unpinning PinCosts::solveWithout(const PinSet &pins) const {
  PlacementProblem problem = placement.getProblem();
  // The same, but for the price of what was pinned.
  PlacementProblem unpriced = problem;
  for (const Held &entry : held) {
    if (!llvm::all_of(entry.pins, [&](int pin) { return pins.contains(pin); }))
      continue;
    for (PlacementProblem *each : {&problem, &unpriced})
      entry.release(*each);
    if (entry.port >= 0)
      unpriced.scaleNoise(entry.port, 0);
  }
  Unpinning result;
  result.pins = pins.size();
  Frontier frontier(problem, &pinned);
  // Mostly the price stays near what it was.
  const Solution *solution = frontier.withinNear(budget, chosen.noisePrice);
  // The hull is coarse: a vertex within the budget may cost more than the
  // placement with the pins, which is still legal.
  if (solution && solution->bytes < chosen.bytes)
    return describe(std::move(result), problem, solution->assignment);
  std::optional<PlacementProblem::Assignment> dear =
      unpriced.solve(chosen.noisePrice);
  return describe(std::move(result), problem, dear ? *dear : chosen.assignment);
}

Unpinning
PinCosts::describe(Unpinning result, const PlacementProblem &problem,
                   const PlacementProblem::Assignment &assignment) const {
  double noise = problem.noiseOf(assignment);
  result.bytes = chosen.bytes - problem.costOf(assignment, 0).value_or(0);
  result.savedBytes =
      problem.keptCostOf(chosen.assignment) - problem.keptCostOf(assignment);
  result.error = setup.errorFactor(noise);
  result.isWithin = noise <= budget;
  return result;
}

/// Those that save most within the budget first.
static void sortBySaving(std::vector<Unpinning> &list) {
  llvm::sort(list, [](const Unpinning &a, const Unpinning &b) {
    return std::tie(b.isWithin, b.bytes, a.rule, a.region, a.op) <
           std::tie(a.isWithin, a.bytes, b.rule, b.region, b.op);
  });
}

std::vector<Unpinning> PinCosts::byRule() {
  llvm::MapVector<StringRef, PinSet> rules;
  for (const auto &[pin, number] : numbers)
    rules[pin.second.getRule().getValue()].insert(number);
  std::vector<Unpinning> result;
  for (const auto &[rule, pins] : rules) {
    Unpinning unpinning = solveWithout(pins);
    unpinning.rule = rule.str();
    result.push_back(std::move(unpinning));
  }
  sortBySaving(result);
  return result;
}

int64_t PinCosts::boundOf(int pin) const {
  const PlacementProblem &problem = placement.getProblem();
  int64_t bytes = 0;
  for (int i : heldBy[pin]) {
    const Held &entry = held[i];
    if (entry.pins.size() > 1)
      continue;
    if (entry.call >= 0) {
      const auto &call = problem.getCalls()[entry.call];
      bytes += call.high - call.low;
      continue;
    }
    if (entry.result >= 0) {
      const auto &value = problem.getValues()[entry.result];
      bytes += value.storeHigh - value.storeLow;
      continue;
    }
    const auto &port = problem.getPorts()[entry.port];
    const auto &value = problem.getValues()[port.value];
    bytes += port.readHigh - port.readLow + value.storeHigh - value.storeLow;
    bytes += value.keepHigh - value.keepLow;
  }
  return bytes;
}

std::vector<PinCosts::Candidate> PinCosts::candidates() const {
  // The first in the graph speaks for those like it.
  std::map<std::tuple<StringRef, std::string, bool, int64_t>, size_t> kinds;
  std::vector<Candidate> list;
  for (const auto &[key, number] : numbers) {
    int64_t bound = boundOf(number);
    if (bound <= 0)
      continue;
    auto [op, pin] = key;
    auto [it, isNew] = kinds.try_emplace(
        {pin.getRule().getValue(), operatorName(op), isBackward(op), bound},
        list.size());
    if (isNew)
      list.push_back({number, bound, 0});
    Candidate &candidate = list[it->second];
    ++candidate.count;
    if (op->isBeforeInBlock(numbers.begin()[candidate.pin].first.first))
      candidate.pin = number;
  }
  llvm::sort(list, [](const Candidate &a, const Candidate &b) {
    return std::tuple(-a.bound, a.pin) < std::tuple(-b.bound, b.pin);
  });
  list.resize(std::min(list.size(), kSinglePins));
  return list;
}

std::vector<Unpinning> PinCosts::largest() {
  std::vector<HeldPin> pinOf;
  for (const auto &[pin, number] : numbers)
    pinOf.push_back(pin);
  std::vector<Unpinning> result;
  for (const Candidate &candidate : candidates()) {
    PinSet single;
    single.insert(candidate.pin);
    Unpinning unpinning = solveWithout(single);
    auto [op, pin] = pinOf[candidate.pin];
    unpinning.rule = pin.getRule().str();
    unpinning.reason = pin.getReason().str();
    unpinning.region = modulePathOf(op->getLoc()).str();
    unpinning.op = operatorName(op);
    unpinning.source = sourceText(op->getLoc());
    unpinning.pins = candidate.count;
    result.push_back(std::move(unpinning));
  }
  sortBySaving(result);
  return result;
}
