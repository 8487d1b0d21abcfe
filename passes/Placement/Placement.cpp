//===- Placement.cpp - the placement problem of a graph -------------------===//

#include "passes/Placement/Placement.h"
#include "dialect/IR/Pins.h"
#include "passes/Placement/Loads.h"

using namespace mlir;
using namespace mlir::mp;

static bool isBackwardValue(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isBackward(op);
}

/// True if the operand or a value that it is a copy of is pinned.
static bool isPinnedOnTheWay(OpOperand &use) {
  if (isPinnedWide(use))
    return true;
  Value value = use.get();
  while (!isPinnedWide(value)) {
    Operation *op = value.getDefiningOp();
    if (!op || !isCopy(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

Placement::Placement(func::FuncOp func, const FusionEstimate &fusion,
                     const PlacementOptions &options)
    : fusion(fusion), options(options), noise(func),
      half(options.openHalf ? options.openHalf : halfTypeOf(func)) {
  if (!half)
    return;
  if (options.openHalf)
    for (const FusionEstimate::Kernel &kernel : fusion.getKernels())
      if (kernel.isExternal)
        addOpenCall(kernel.stored.front());
  for (size_t i = 0; i < fusion.getKernels().size(); ++i)
    addReads(i);
  addResults(func.getBody().front().getTerminator());
  correlate();
}

/// The readers of one rounded copy see the same error, so that what reaches the
/// results along k ways adds up before it is squared: by Cauchy and Schwarz to
/// k times the sum of the squares at most.
void Placement::correlate() {
  for (const StoredValue &stored : values) {
    auto isNoisy = [&](const Port &port) {
      return problem.getPorts()[port.port].noise > 0;
    };
    double ways = llvm::count_if(stored.ports, isNoisy);
    for (const Port &port : stored.ports)
      problem.scaleNoise(port.port, ways);
  }
}

void Placement::refuse(const llvm::DenseSet<int> &ports) {
  for (StoredValue &stored : values)
    for (Port &port : stored.ports)
      if (ports.contains(port.port)) {
        problem.keepHigh(port.port);
        port.why = PortReason::Budget;
      }
}

void Placement::addOpenCall(Operation *op) {
  std::optional<CallShape> shape = openCallShape(op);
  if (!shape)
    return;
  OpenCall open{op, -1, costOf(*shape, *options.costs, half)};
  auto bytes = [&](double seconds) {
    return std::llround(
        std::min(seconds * options.costs->bandwidth, double(1ll << 45)));
  };
  PlacementProblem::Call call{bytes(open.cost.wide), bytes(open.cost.half), {}};
  // Only products can keep a result that halves make.
  open.isPinned = hasPinnedOperands(op) ||
                  (!(options.hasWideResults && isa<MatmulOp>(op)) &&
                   llvm::any_of(op->getResults(), [](Value result) {
                     return isPinnedWide(result);
                   }));
  if (!open.cost.pays || open.isPinned)
    call.fixed = Storage::High;
  open.call = callOf[op] = problem.addCall(call);
  openCalls.push_back(std::move(open));
}

void Placement::addReads(int number) {
  const FusionEstimate::Kernel &kernel = fusion.getKernels()[number];
  llvm::MapVector<Value, int64_t> loads = loadsOf(kernel, fusion);
  for (Operation *op : fusion.operationsOf(kernel)) {
    // A conversion is a copy of its root and no reader of it.
    if (isCopy(op))
      continue;
    for (OpOperand &use : op->getOpOperands())
      addRead(use, number, loads);
  }
}

void Placement::addRead(OpOperand &use, int kernel,
                        const llvm::MapVector<Value, int64_t> &loads) {
  bool isExternal = fusion.getKernels()[kernel].isExternal;
  std::optional<RootRead> read = readOf(use, fusion);
  if (!read || (!isExternal && fusion.kernelOf(read->buffer) == kernel))
    return;
  StoredValue *stored = valueFor(*read);
  if (!stored)
    return;
  PlacementProblem::Port port;
  port.value = stored->value;
  port.kernel = kernel;
  FixedType fixed{std::nullopt, PortReason::Call};
  auto call = callOf.find(use.getOwner());
  if (call != callOf.end() &&
      changesWithCall(use.getOwner(), use.get().getType())) {
    // What the call itself reads is part of its cost.
    port.call = call->second;
  } else {
    fixed = fixedType(use, *read);
    port.fixed = fixed.type;
    // Paid once by the kernel, however many ports it has.
    int64_t elements = loads.lookup(read->buffer);
    port.readHigh = 4 * elements;
    port.readLow = 2 * elements;
  }
  port.isKept = read->root.getDefiningOp() && !isBackwardValue(read->root) &&
                isBackward(use.getOwner());
  // What rounds by itself, and a call that does, may do so whatever the call
  // did that made the value.
  port.followsResult = port.call < 0 && !read->isRounded &&
                       callOf.count(read->root.getDefiningOp());
  if (!read->isRounded && !isExternal && !port.followsResult &&
      elementTypeOf(read->root).isF32())
    port.noise = noise.priceOf(use);
  stored->ports.push_back(
      {&use, problem.addPort(port), read->isRounded, fixed.why});
}

/// Results have the types that the caller knows.
void Placement::addResults(Operation *terminator) {
  for (OpOperand &use : terminator->getOpOperands()) {
    std::optional<RootRead> read = readOf(use, fusion);
    StoredValue *stored = read ? valueFor(*read) : nullptr;
    if (!stored)
      continue;
    PlacementProblem::Port port;
    port.value = stored->value;
    port.fixed =
        isHalf(elementTypeOf(use.get())) ? Storage::Low : Storage::High;
    stored->ports.push_back(
        {&use, problem.addPort(port), read->isRounded, PortReason::Result});
  }
}

Placement::StoredValue *Placement::valueFor(const RootRead &read) {
  auto [number, isNew] = numbers.try_emplace(read.root, -1);
  if (isNew) {
    Type type = elementTypeOf(read.root);
    bool isKnown = type.isF32() || type == half;
    if (isKnown &&
        estimatedElements(read.root.getType()) > options.minElements) {
      number->second = values.size();
      values.push_back({read.root, problem.addValue(describe(read)), {}});
    }
  }
  return number->second < 0 ? nullptr : &values[number->second];
}

PlacementProblem::Value Placement::describe(const RootRead &read) {
  using Problem = PlacementProblem;
  Problem::Value value;
  Type type = elementTypeOf(read.root);
  int64_t elements = estimatedElements(read.root.getType());
  int64_t high = 4 * elements, low = 2 * elements;
  value.storeHigh = high;
  value.storeLow = low;
  value.widen = value.narrow = high + low + options.launchBytes;
  Operation *producer = read.root.getDefiningOp();
  if (!producer) {
    value.producer = Problem::Producer::Input;
    value.given = type.isF32() ? Storage::High : Storage::Low;
    return value;
  }
  value.keepHigh = options.memoryPrice * high;
  value.keepLow = options.memoryPrice * low;
  if (kernelRoleOf(producer) != KernelRole::External)
    return value;
  value.producer = Problem::Producer::External;
  auto open = callOf.find(producer);
  if (open != callOf.end() && changesWithCall(producer, read.root.getType())) {
    value.owner = open->second;
    value.hasFreeResult = hasFreeResult(read.root);
    value.isPinned = isPinnedWide(read.root);
    value.storeHigh = value.storeLow = 0;
    return value;
  }
  Storage computed = type.isF32() ? Storage::High : Storage::Low;
  value.owner = problem.addCall({0, 0, computed});
  value.hasFreeResult = computed == Storage::Low && hasFreeResult(read.root);
  return value;
}

/// A product that must keep its half result is one of halves in the traced
/// graph.
bool Placement::hasFreeResult(Value value) const {
  return options.hasWideResults && value.getDefiningOp<MatmulOp>() &&
         !(isHalf(elementTypeOf(value)) && isKept(value));
}

Freedom Placement::freedomNeededFor(OpOperand &use,
                                    const RootRead &read) const {
  if (isBackwardValue(read.root))
    return Freedom::Gradients;
  return isBackward(use.getOwner()) ? Freedom::Saved : Freedom::Stream;
}

Placement::FixedType Placement::fixedType(OpOperand &use,
                                          const RootRead &read) const {
  Operation *reader = use.getOwner();
  FixedType open{std::nullopt, PortReason::Open};
  auto fixed = [](Storage type, PortReason why) {
    return FixedType{type, why};
  };
  if (kernelRoleOf(reader) == KernelRole::External)
    return fixed(isHalf(elementTypeOf(use.get())) ? Storage::Low
                                                  : Storage::High,
                 PortReason::External);
  // What is rounded anyway may be read in either type.
  if (read.isRounded)
    return {std::nullopt, PortReason::Rounded};
  if (!elementTypeOf(read.root).isF32())
    return options.hasWideResults ? open
                                  : fixed(Storage::Low, PortReason::Half);
  // A call that becomes one of halves rounds its result; readers take it so.
  if (callOf.count(read.root.getDefiningOp()))
    return isPinnedWide(read.root) ? fixed(Storage::High, PortReason::Pinned)
                                   : open;
  // Parameters and other arguments are the caller's.
  if (!read.root.getDefiningOp())
    return fixed(Storage::High, PortReason::Argument);
  if (freedomNeededFor(use, read) > options.freedom)
    return fixed(Storage::High, PortReason::Freedom);
  // Conversions to other types belong to no node of their own: operators do
  // some of them by themselves.
  auto precision = dyn_cast<PrecisionOpInterface>(reader);
  if (!precision || isa<CastOp>(reader) ||
      precision.observesRounding(use.getOperandNumber()))
    return fixed(Storage::High, PortReason::Observed);
  if (isPinnedOnTheWay(use))
    return fixed(Storage::High, PortReason::Pinned);
  return open;
}
