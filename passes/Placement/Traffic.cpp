//===- Traffic.cpp - bytes that a graph moves -----------------------------===//

#include "passes/Placement/Traffic.h"
#include "passes/Placement/Loads.h"
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
  void addReads(const FusionEstimate::Kernel &kernel, int number) {
    auto &loads = reads.emplace_back();
    for (auto [buffer, elements] : loadsOf(kernel, fusion)) {
      Operation *producer = buffer.getDefiningOp();
      if (!kernel.isExternal && producer && fusion.kernelOf(buffer) == number)
        continue;
      loads[buffer] = elements;
      kept.insert(buffer);
      // Arguments are kept as well, but not on its account: the caller has
      // them.
      if (kernel.isBackward && producer && !isBackward(producer))
        saved.insert(buffer);
    }
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
    Traffic::Kernel &moved = total.kernels.emplace_back();
    for (auto [buffer, elements] : reads[number]) {
      moved.readBytes += bytesOf(buffer, elements);
      moved.reads.push_back(buffer);
    }
    for (Operation *op : kernel.stored)
      for (Value result : op->getResults())
        if (kernel.isExternal || kept.contains(result))
          moved.storedBytes += estimatedBytes(result.getType());
    int64_t bytes = moved.readBytes + moved.storedBytes;
    (kernel.isExternal ? total.externalBytes : total.fusedBytes) += bytes;
    (kernel.isExternal ? total.externalKernels : total.fusedKernels) += 1;
    moved.onlyConverts = !kernel.isExternal && onlyConverts(kernel);
    if (moved.onlyConverts) {
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
