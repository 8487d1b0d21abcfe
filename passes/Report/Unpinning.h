//===- Unpinning.h - what pins cost a placement ----------------*- C++ -*-===//

#ifndef MP_PASSES_REPORT_UNPINNING_H
#define MP_PASSES_REPORT_UNPINNING_H

#include "dialect/IR/Pins.h"
#include "passes/Placement/Frontier.h"
#include "passes/Report/PlacementReport.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::mp {

/// A pin and the operation that has it.
using HeldPin = std::pair<Operation *, PinAttr>;

/// The pins that keep what a port reads in f32: of the value, and of the
/// reader's operand.
SmallVector<HeldPin, 2> pinsAt(const Placement::StoredValue &stored,
                               const Placement::Port &port);

/// Solves a placement again without some of its pins.
class PinCosts {
public:
  /// `chosen` is of the frontier `pinned`. `budget` limits the noise of each
  /// solution.
  PinCosts(const PlacementSetup &setup, const Frontier &pinned,
           const Solution &chosen, double budget);

  /// Without each rule, those that save most first.
  std::vector<Unpinning> byRule();

  /// Without one pin, for the pins that can save most. Of pins alike only the
  /// first.
  std::vector<Unpinning> largest();

private:
  using PinSet = llvm::SmallDenseSet<int, 8>;
  /// A port, a call or the result of one that stays f32 as long as one of
  /// `pins` is there.
  struct Held {
    int port = -1, call = -1, result = -1;
    SmallVector<int, 2> pins;

    void release(PlacementProblem &problem) const;
  };
  struct Candidate {
    int pin;
    int64_t bound; ///< what it can save at most
    int64_t count; ///< pins alike
  };

  int numberOf(HeldPin pin);
  void add(Held entry, ArrayRef<HeldPin> pins);
  void addPorts();
  void addCalls();
  int64_t boundOf(int pin) const;
  std::vector<Candidate> candidates() const;
  Unpinning solveWithout(const PinSet &pins) const;
  Unpinning describe(Unpinning result, const PlacementProblem &problem,
                     const PlacementProblem::Assignment &assignment) const;

  const PlacementSetup &setup;
  const Placement &placement;
  const Frontier &pinned;
  const Solution &chosen;
  double budget;
  llvm::MapVector<HeldPin, int> numbers;
  std::vector<Held> held;
  std::vector<SmallVector<int, 4>> heldBy; ///< per pin: indices of `held`
};

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_UNPINNING_H
