//===- Placement.h - the placement problem of a graph ----------*- C++ -*-===//
//
// Makes a PlacementProblem of a function: one value for each root that some
// other kernel reads, one port for each reading operation.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PLACEMENT_PLACEMENT_H
#define MP_PASSES_PLACEMENT_PLACEMENT_H

#include "passes/Placement/Freedom.h"
#include "passes/Placement/LibraryCalls.h"
#include "passes/Placement/Noise.h"
#include "passes/Placement/Problem.h"
#include "passes/Placement/StoredValues.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::mp {

struct PlacementOptions {
  Freedom freedom = Freedom::None;
  /// Library calls on half operands can store their f32 accumulator.
  bool hasWideResults = false;
  /// Smaller tensors are left alone.
  int64_t minElements = 16384;
  /// Bytes that a kernel launch is worth.
  int64_t launchBytes = 0;
  /// Bytes of traffic that a byte kept for backward is worth.
  double memoryPrice = 1;
  /// Calls of f32 operands may become calls of this type; null for none.
  Type openHalf;
  /// What calls cost; needed for `openHalf`.
  const CostModel *costs = nullptr;
};

/// Why a reader must get one type, or may get either.
enum class PortReason : uint8_t {
  Open,     ///< either type will do
  Rounded,  ///< the traced program rounds what it reads; either type will do
  Half,     ///< the value is a half, and no f32 of it exists
  Call,     ///< follows the type of a call that is open
  External, ///< a library call reads the type that it was traced with
  Result,   ///< the caller knows the type
  Argument, ///< the caller's value
  Freedom,  ///< the numerics add no rounding there
  Observed, ///< a comparison, an index or an integer shows the rounding
  Pinned,   ///< pins of the value or of the reader
  Budget,   ///< the module has no noise left to add
};

class Placement {
public:
  /// One port of the problem and the operand that it stands for.
  struct Port {
    OpOperand *use;
    int port;
    bool isRounded;
    PortReason why;
  };
  struct StoredValue {
    Value root;
    int value; ///< in the problem
    SmallVector<Port, 2> ports;
  };

  Placement(func::FuncOp func, const FusionEstimate &fusion,
            const PlacementOptions &options);

  /// A call whose type is open.
  struct OpenCall {
    Operation *op;
    int call; ///< in the problem
    CallCost cost;
    bool isPinned = false;
  };

  const PlacementProblem &getProblem() const { return problem; }
  ArrayRef<StoredValue> getValues() const { return values; }
  ArrayRef<OpenCall> getOpenCalls() const { return openCalls; }
  const NoiseModel &getNoise() const { return noise; }
  Type getHalfType() const { return half; }

  /// Has ports of the problem read High: a budget has no room for them.
  void refuse(const llvm::DenseSet<int> &ports);

private:
  void addOpenCall(Operation *op);
  void addReads(int kernel);
  /// `loads`: elements that the kernel reads of each buffer.
  void addRead(OpOperand &use, int kernel,
               const llvm::MapVector<Value, int64_t> &loads);
  void addResults(Operation *terminator);
  void correlate();
  StoredValue *valueFor(const RootRead &read);
  PlacementProblem::Value describe(const RootRead &read);
  bool hasFreeResult(Value value) const;
  /// The type that a reader must get; std::nullopt if it is open.
  struct FixedType {
    std::optional<Storage> type;
    PortReason why;
  };
  FixedType fixedType(OpOperand &use, const RootRead &read) const;
  Freedom freedomNeededFor(OpOperand &use, const RootRead &read) const;

  const FusionEstimate &fusion;
  PlacementOptions options;
  NoiseModel noise;
  Type half;
  PlacementProblem problem;
  std::vector<StoredValue> values;
  std::vector<OpenCall> openCalls;
  llvm::DenseMap<Operation *, int> callOf; ///< open call to call of the problem
  llvm::DenseMap<Value, int> numbers;      ///< root to index in `values`, or -1
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_PLACEMENT_H
