//===- Traffic.cpp - bytes that a graph moves -----------------------------===//

#include "passes/Placement/Traffic.h"
#include "passes/Placement/StoredValues.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
class Counter {
public:
  Counter(func::FuncOp func, const FusionEstimate &fusion)
      : func(func), fusion(fusion) {
    int number = 0;
    for (const FusionEstimate::Kernel &kernel : fusion.getKernels())
      addReads(kernel, number++);
    for (Value result : func.getBody().front().getTerminator()->getOperands())
      kept.insert(viewedBuffer(result));
  }

  Traffic count() {
    int number = 0;
    for (const FusionEstimate::Kernel &kernel : fusion.getKernels())
      addKernel(kernel, number++);
    for (Value value : saved)
      total.savedBytes += estimatedBytes(value.getType());
    return total;
  }

private:
  struct Load {
    Value buffer;
    int64_t elements;
  };

  /// What an operand loads from memory, floats or not.
  std::optional<Load> loadOf(Operation *reader, OpOperand &use) const {
    if (!isa<RankedTensorType>(use.get().getType()))
      return std::nullopt;
    Value buffer = viewedBuffer(use.get());
    if (!fusion.isStored(buffer) &&
        kernelRoleOf(reader) != KernelRole::External)
      return std::nullopt;
    if (!isa<RankedTensorType>(buffer.getType()))
      return std::nullopt;
    int64_t elements = std::min(estimatedElements(use.get().getType()),
                                estimatedElements(buffer.getType()));
    auto precision = dyn_cast<PrecisionOpInterface>(reader);
    if (precision && precision.getOpKind() == OpKind::Gather &&
        use.getOperandNumber() == 0)
      elements =
          std::min(elements, estimatedElements(reader->getResult(0).getType()));
    return Load{buffer, elements};
  }

  void addReads(const FusionEstimate::Kernel &kernel, int number) {
    auto &loads = reads.emplace_back();
    for (Operation *op : fusion.operationsOf(kernel))
      for (OpOperand &use : op->getOpOperands()) {
        std::optional<Load> load = loadOf(op, use);
        if (!load ||
            (!kernel.isExternal && fusion.kernelOf(load->buffer) == number &&
             load->buffer.getDefiningOp()))
          continue;
        int64_t &elements = loads[load->buffer];
        elements = std::max(elements, load->elements);
        kept.insert(load->buffer);
        Operation *producer = load->buffer.getDefiningOp();
        if (kernel.isBackward && (!producer || !isBackward(producer)))
          saveIfForward(load->buffer, producer);
      }
  }

  /// Arguments that backward reads are kept as well, but not on its account:
  /// the caller has them.
  void saveIfForward(Value buffer, Operation *producer) {
    if (producer && kernelRoleOf(producer) != KernelRole::Creation)
      saved.insert(buffer);
  }

  static int64_t bytesOf(Value buffer, int64_t elements) {
    int64_t all = estimatedElements(buffer.getType());
    return all == 0 ? 0 : estimatedBytes(buffer.getType()) / all * elements;
  }

  bool onlyConverts(const FusionEstimate::Kernel &kernel) const {
    bool hasCast = false;
    for (Operation *op : fusion.operationsOf(kernel)) {
      if (!isCopy(op))
        return false;
      hasCast |= isa<CastOp, RoundOp>(op);
    }
    return hasCast;
  }

  void addKernel(const FusionEstimate::Kernel &kernel, int number) {
    int64_t bytes = 0;
    for (auto [buffer, elements] : reads[number])
      bytes += bytesOf(buffer, elements);
    for (Operation *op : kernel.stored)
      for (Value result : op->getResults())
        if (kernel.isExternal || kept.contains(result))
          bytes += estimatedBytes(result.getType());
    (kernel.isExternal ? total.externalBytes : total.fusedBytes) += bytes;
    (kernel.isExternal ? total.externalKernels : total.fusedKernels) += 1;
    if (!kernel.isExternal && onlyConverts(kernel)) {
      total.castKernels += 1;
      total.castBytes += bytes;
    }
  }

  func::FuncOp func;
  const FusionEstimate &fusion;
  std::vector<llvm::MapVector<Value, int64_t>> reads;
  llvm::DenseSet<Value> kept;
  llvm::SetVector<Value> saved;
  Traffic total;
};
} // namespace

Traffic mlir::mp::countTraffic(func::FuncOp func,
                               const FusionEstimate &fusion) {
  return Counter(func, fusion).count();
}
