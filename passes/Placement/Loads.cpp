//===- Loads.cpp - what a kernel reads ------------------------------------===//

#include "passes/Placement/Loads.h"

using namespace mlir;
using namespace mlir::mp;

/// The fewest elements on the way from `value` to the buffer that it views.
static int64_t elementsInView(Value value) {
  int64_t elements = estimatedElements(value.getType());
  Value buffer = viewedBuffer(value);
  while (value != buffer) {
    value = value.getDefiningOp()->getOperand(0);
    elements = std::min(elements, estimatedElements(value.getType()));
  }
  return elements;
}

/// The elements of an operand that `op` looks at to make all of its results.
static int64_t elementsUsed(OpOperand &use) {
  Operation *op = use.getOwner();
  int64_t elements = elementsInView(use.get());
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (precision && precision.getOpKind() == OpKind::Gather &&
      use.getOperandNumber() == 0)
    return std::min(elements, estimatedElements(op->getResult(0).getType()));
  return elements;
}

namespace {
class LoadCounter {
public:
  LoadCounter(const FusionEstimate::Kernel &kernel,
              const FusionEstimate &fusion)
      : kernel(kernel), fusion(fusion) {}

  llvm::MapVector<Value, int64_t> count() {
    SmallVector<Operation *> operations = fusion.operationsOf(kernel);
    // What a value is needed for is known once its readers were seen.
    llvm::sort(operations, [](Operation *a, Operation *b) {
      return b->isBeforeInBlock(a);
    });
    for (Operation *op : operations)
      visit(op);
    llvm::MapVector<Value, int64_t> loads;
    for (auto &[buffer, views] : needed)
      if (kernel.isExternal || fusion.isStored(buffer))
        loads[buffer] = std::llround(elementsOf(buffer, views));
    return loads;
  }

private:
  /// Elements needed of each view of a buffer.
  using Views = llvm::SmallMapVector<Value, double, 2>;

  static double elementsOf(Value buffer, const Views &views) {
    double elements = 0;
    for (auto [view, count] : views)
      elements += count;
    return std::min(elements, double(estimatedElements(buffer.getType())));
  }

  /// The part of the results of `op` that is computed.
  double shareOf(Operation *op) const {
    if (fusion.isStored(op->getResult(0)))
      return 1;
    double share = 0;
    for (Value result : op->getResults()) {
      auto found = needed.find(result);
      int64_t all = estimatedElements(result.getType());
      if (found != needed.end() && all > 0)
        share = std::max(share, elementsOf(result, found->second) / all);
    }
    return share;
  }

  void visit(Operation *op) {
    double share = shareOf(op);
    for (OpOperand &use : op->getOpOperands()) {
      Value buffer = viewedBuffer(use.get());
      if (!isa<RankedTensorType>(use.get().getType()) ||
          !isa<RankedTensorType>(buffer.getType()))
        continue;
      double &count = needed[buffer][use.get()];
      count = std::max(count, share * elementsUsed(use));
    }
  }

  const FusionEstimate::Kernel &kernel;
  const FusionEstimate &fusion;
  llvm::MapVector<Value, Views> needed;
};
} // namespace

llvm::MapVector<Value, int64_t>
mlir::mp::loadsOf(const FusionEstimate::Kernel &kernel,
                  const FusionEstimate &fusion) {
  return LoadCounter(kernel, fusion).count();
}
