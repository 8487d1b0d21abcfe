//===- AddedRoundings.cpp - conditions of the contract relaxed ------------===//

#include "passes/Check/AddedRoundings.h"
#include "dialect/IR/MPOps.h"
#include "passes/Check/PinnedGraph.h"
#include "passes/Placement/LibraryCalls.h"
#include "passes/Placement/Noise.h"
#include "passes/Placement/StoredValues.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

using Read = Allowances::Read;
using Call = Allowances::Call;

double AddedRoundings::growth() const {
  return noiseAdded == 0 ? 0 : std::sqrt(1 + noiseAdded / noiseBefore) - 1;
}

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

//===----------------------------------------------------------------------===//
// Claims
//===----------------------------------------------------------------------===//

LogicalResult mlir::mp::check::claimAddedRoundings(func::FuncOp before,
                                                   func::FuncOp after,
                                                   ArrayRef<Record> records,
                                                   Allowances &allowances) {
  LogicalResult result = success();
  auto refuse = [&](const Record &record) {
    result = failure();
    return after.emitError("record of ")
           << record.rule << " for node " << record.node << ' ';
  };
  OperatorsByNode operators(before);
  for (const Record &record : records) {
    bool isRead = record.rule == "round-store";
    if (!isRead && record.rule != "half-call")
      continue;
    Operation *op = operators.lookup(record.node);
    if (!op)
      refuse(record) << "names no operator of @" << before.getName();
    else if (!record.half)
      refuse(record) << "names no half type";
    else if (!isRead)
      allowances.halfCalls[op] = {record.half, record.keepsResult};
    else if (record.operand < 0 || record.operand >= op->getNumOperands())
      refuse(record) << "names no operand of it";
    else
      allowances.roundedReads[op].push_back(
          {unsigned(record.operand), record.half});
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {
class Verifier {
public:
  Verifier(func::FuncOp before, func::FuncOp after,
           const Allowances &allowances, PinnedGraph &graph)
      : before(before), after(after), allowances(allowances), graph(graph),
        noise(graph.getFunction()) {}

  LogicalResult verify(AddedRoundings &added);

private:
  LogicalResult verifyRead(Operation *reader, const Read &read);
  LogicalResult verifyCall(Operation *op, const Call &call);
  LogicalResult verifyBudget(AddedRoundings &added);
  std::string whyNotRead(Operation *reader, const Read &read);
  std::string whyNotCalled(Operation *op, const Call &call);
  Attribute placement(StringRef name) const;

  func::FuncOp before, after;
  const Allowances &allowances;
  PinnedGraph &graph;
  NoiseModel noise;
  /// What each value's rounded reads add to the noise of the results.
  llvm::MapVector<Value, SmallVector<double, 2>> prices;
};
} // namespace

/// What mp-assign-precision says about the function.
Attribute Verifier::placement(StringRef name) const {
  auto entry =
      after->getAttrOfType<DictionaryAttr>(MPDialect::kPlacementAttrName);
  return entry ? entry.get(name) : Attribute();
}

/// Why no rounding may be put on a value that is read by a generated kernel;
/// empty if one may.
static std::string whyNotRounded(OpOperand &use) {
  if (!isa<RankedTensorType>(use.get().getType()) ||
      !elementOf(use.get()).isF32())
    return "it is no f32 tensor";
  std::string pin = describeWidePin(use);
  for (Value value = use.get();; value = value.getDefiningOp()->getOperand(0)) {
    if (pin.empty())
      pin = describeWidePin(value);
    if (!pin.empty())
      return "it is pinned by " + pin;
    if (!value.getDefiningOp())
      return "it is an argument";
    if (!isCopy(value.getDefiningOp()))
      break;
  }
  bool isRounded = false;
  Value root = rootOf(use.get(), isRounded);
  return isRounded || !elementOf(root).isF32() ? "it is rounded before" : "";
}

std::string Verifier::whyNotRead(Operation *reader, const Read &read) {
  Operation *op = graph.lookup(reader);
  if (!op || op->getNumOperands() != reader->getNumOperands())
    return "its reader is not found among the pins";
  OpOperand &use = op->getOpOperand(read.operand);
  std::string name = cast<StringAttr>(signatureOf(reader).first).str();
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || precision.observesRounding(read.operand))
    return name + " observes it";
  KernelRole role = kernelRoleOf(op);
  if (role == KernelRole::External || role == KernelRole::Nothing)
    return name + " is no generated kernel";
  if (std::string why = whyNotRounded(use); !why.empty())
    return why;
  bool isRounded = false;
  prices[rootOf(use.get(), isRounded)].push_back(noise.priceOf(use));
  return "";
}

LogicalResult Verifier::verifyRead(Operation *reader, const Read &read) {
  std::string why = whyNotRead(reader, read);
  if (why.empty())
    return success();
  InFlightDiagnostic diag = reader->emitError("illegal rounding of operand ")
                            << read.operand << " to " << read.half << ": "
                            << why;
  diag.attachNote(after.getLoc()) << "recorded in @" << after.getName();
  return diag;
}

std::string Verifier::whyNotCalled(Operation *op, const Call &call) {
  auto asked = dyn_cast_if_present<TypeAttr>(placement("precision"));
  if (!asked || asked.getValue() != call.half)
    return "nobody asked for that precision";
  Operation *own = graph.lookup(op);
  if (!own || !openCallShape(own))
    return "it is no library call of f32 operands";
  for (OpOperand &use : own->getOpOperands())
    if (std::string pin = describeWidePin(use); !pin.empty())
      return "an operand is pinned by " + pin;
  if (call.keepsResult)
    return isa<MatmulOp>(own) ? "" : "only a product can keep its result";
  for (Value result : own->getResults())
    if (std::string pin = describeWidePin(result); !pin.empty())
      return "a result is pinned by " + pin;
  return "";
}

LogicalResult Verifier::verifyCall(Operation *op, const Call &call) {
  std::string why = whyNotCalled(op, call);
  if (why.empty())
    return success();
  InFlightDiagnostic diag = op->emitError("illegal call in ")
                            << call.half << ": " << why;
  diag.attachNote(after.getLoc()) << "recorded in @" << after.getName();
  return diag;
}

/// Readers of one rounded value see the same error, so that what reaches the
/// results along k ways is at most k times the sum of their squares.
LogicalResult Verifier::verifyBudget(AddedRoundings &added) {
  if (prices.empty())
    return success();
  auto epsilon = dyn_cast_if_present<FloatAttr>(placement("epsilon"));
  if (!epsilon)
    return after.emitError("adds roundings, and mp.placement names no epsilon");
  added.epsilon = epsilon.getValueAsDouble();
  added.noiseBefore = noise.total();
  for (const auto &[root, each] : prices) {
    double sum = 0, ways = 0;
    for (double price : each) {
      sum += price;
      ways += price > 0;
    }
    added.noiseAdded += ways * sum;
  }
  double budget =
      ((1 + added.epsilon) * (1 + added.epsilon) - 1) * added.noiseBefore;
  if (added.noiseAdded <= budget * (1 + 1e-9))
    return success();
  return after.emitError("adds roundings whose noise is ")
         << added.noiseAdded << ", and epsilon " << added.epsilon << " allows "
         << budget;
}

LogicalResult Verifier::verify(AddedRoundings &added) {
  LogicalResult result = success();
  // In program order, so that errors and sums do not depend on addresses.
  for (Operation &op : before.getBody().front()) {
    auto reads = allowances.roundedReads.find(&op);
    if (reads != allowances.roundedReads.end())
      for (const Read &read : reads->second) {
        ++added.reads;
        if (failed(verifyRead(&op, read)))
          result = failure();
      }
    auto call = allowances.halfCalls.find(&op);
    if (call == allowances.halfCalls.end())
      continue;
    ++added.calls;
    if (failed(verifyCall(&op, call->second)))
      result = failure();
  }
  if (failed(verifyBudget(added)))
    result = failure();
  return result;
}

LogicalResult
mlir::mp::check::verifyAddedRoundings(func::FuncOp before, func::FuncOp after,
                                      const Allowances &allowances,
                                      AddedRoundings &added) {
  added = AddedRoundings();
  added.function = before.getName().str();
  if (allowances.roundedReads.empty() && allowances.halfCalls.empty())
    return success();
  bool hasF16 = llvm::any_of(allowances.halfCalls, [](const auto &call) {
    return call.second.half.isF16();
  });
  PinnedGraph graph(before, hasF16 ? Half::F16 : Half::Auto);
  if (!graph.getFunction())
    return before.emitError("cannot be pinned as before");
  graph.addPinsOf(after);
  return Verifier(before, after, allowances, graph).verify(added);
}
