//===- Problem.h - which type each stored value gets -----------*- C++ -*-===//
//
// The placement problem of the design, §5: two types, High (f32) and Low (the
// half type), and a cost in bytes for each choice. Every cost has the form "if
// u is High and v is Low", so one minimum cut is the best of all assignments.
//
// A *value* is one tensor with its views and conversions, however often it is
// stored. A *port* is one operation that reads it, as High or as Low. A
// *kernel* is a set of ports of one value that is paid for together: the kernel
// reads the High copy if any of its ports does, and the Low copy likewise.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_PROBLEM_H
#define MP_PASSES_PLACEMENT_PROBLEM_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::mp {

enum class Storage : uint8_t { High, Low };

class PlacementProblem {
public:
  /// What makes a value.
  enum class Producer : uint8_t {
    Fused,    ///< a generated kernel, which can store either type or both
    External, ///< a library call of type `owner`, which stores one
    Input,    ///< exists already, in type `given`
  };

  struct Value {
    Producer producer = Producer::Fused;
    /// External: number of the call. Input: unused.
    int owner = -1;
    /// External: a call on Low operands can store its High accumulator.
    bool hasFreeResult = false;
    /// External: it must store High.
    bool isPinned = false;
    Storage given = Storage::High; ///< Input only
    int64_t storeHigh = 0, storeLow = 0;
    /// A further kernel that makes the type that is not there; External and
    /// Input only.
    int64_t widen = 0, narrow = 0;
    /// Price of the memory between forward and backward, per type kept.
    int64_t keepHigh = 0, keepLow = 0;
  };

  struct Port {
    int value = -1;
    /// Ports of one value with the same kernel share its reads.
    int kernel = -1;
    /// Number of the library call whose operand this is, or -1.
    int call = -1;
    std::optional<Storage> fixed;
    /// Bytes that the kernel reads; the largest among its ports counts.
    int64_t readHigh = 0, readLow = 0;
    /// Noise that reading Low adds where the traced program reads High, in the
    /// unit of Noise.h.
    double noise = 0;
    /// Low only if the call that makes the value stores Low: what the call did
    /// not round, this reader does not round either.
    bool followsResult = false;
    /// Reads in backward what forward made.
    bool isKept = false;
  };

  /// A library call: the cost of computing in either type.
  struct Call {
    int64_t high = 0, low = 0;
    std::optional<Storage> fixed;
  };

  struct Assignment {
    int64_t cost = 0;
    std::vector<Storage> calls, ports;
    /// Per value: the type that an External producer stores; High for others.
    std::vector<Storage> results;
  };

  int addValue(const Value &value);
  int addPort(const Port &port);
  int addCall(const Call &call);

  /// Multiplies the noise of a port.
  void scaleNoise(int port, double factor) { ports[port].noise *= factor; }

  /// Lets a port, a call or a result have either type.
  void releasePort(int port) { ports[port].fixed = std::nullopt; }
  /// Has a port read High.
  void keepHigh(int port) { ports[port].fixed = Storage::High; }
  void releaseCall(int call) { calls[call].fixed = std::nullopt; }
  void releaseResult(int value) { values[value].isPinned = false; }

  llvm::ArrayRef<Value> getValues() const { return values; }
  llvm::ArrayRef<Port> getPorts() const { return ports; }
  llvm::ArrayRef<Call> getCalls() const { return calls; }

  /// The assignment of least cost where a unit of noise costs `noisePrice`
  /// bytes. Among equals, the one with the most High choices. std::nullopt
  /// if what is fixed contradicts itself.
  ///
  /// Solutions nest: what is High at a lower price of noise is High at a higher
  /// one. Those for lower and for higher prices, where they are known, leave
  /// less to solve; `higher` may also be of a problem where more is fixed High.
  using Known = llvm::ArrayRef<const Assignment *>;
  std::optional<Assignment> solve(double noisePrice, Known lower = {},
                                  Known higher = {}) const;

  /// The cost of any assignment, counted without the cut; std::nullopt if it is
  /// not a legal one.
  std::optional<int64_t> costOf(const Assignment &assignment,
                                double noisePrice) const;

  /// The part of costOf that is about one value; `valuePorts` are all of its
  /// ports.
  std::optional<int64_t> costOfValue(int value, llvm::ArrayRef<int> valuePorts,
                                     const Assignment &assignment) const;

  /// The noise of the ports that an assignment reads as Low.
  double noiseOf(const Assignment &assignment) const;

  /// The part of the cost that is for memory between forward and backward.
  int64_t keptCostOf(const Assignment &assignment) const;

private:
  std::vector<Value> values;
  std::vector<Port> ports;
  std::vector<Call> calls;
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_PROBLEM_H
