//===- Choose.cpp - which schedule fits a shape ---------------------------===//
//
// A model: blocks come in waves; a step along k takes as long as its products
// or as its loads from the L2 cache, whichever is more; each wave also fills
// its ring and stores its results. Figures are those of an H100.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Plan.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

static constexpr double kProductsPerCycle = 2048;
static constexpr double kLoadedBytesPerCycle = 40;
static constexpr double kStoredBytesPerCycle = 16;
static constexpr double kCyclesToFill = 1500;
/// What a dynamic extent is taken for.
static constexpr int64_t kTypicalExtent = 4096;

static int64_t known(int64_t extent) {
  return ShapedType::isDynamic(extent) ? kTypicalExtent : extent;
}

static int64_t tilesOf(const MatmulKernel &kernel, const Schedule &s) {
  return llvm::divideCeil(known(kernel.m), s.blockM()) *
         llvm::divideCeil(known(kernel.n), s.blockN) * known(kernel.batch);
}

static double cyclesOf(const MatmulKernel &kernel, const Schedule &s,
                       int64_t processors) {
  int64_t waves =
      llvm::divideCeil(tilesOf(kernel, s), int64_t(s.blocks) * processors);
  double products = double(s.blockM()) * s.blockN * kStep / kProductsPerCycle;
  double loads = s.stageBytes() / kLoadedBytesPerCycle;
  double steps = double(llvm::divideCeil(known(kernel.k), kStep));
  double stores = double(s.blockM()) * s.blockN * 2 / kStoredBytesPerCycle;
  // Blocks of one multiprocessor share its units; one stores while others
  // multiply.
  double busy = s.blocks * steps * std::max(products, loads);
  return double(waves) * (busy + kCyclesToFill + stores);
}

const Schedule &hopper::chooseSchedule(const MatmulKernel &kernel,
                                       int64_t processors) {
  return *llvm::min_element(schedules(), [&](const Schedule &a,
                                             const Schedule &b) {
    return cyclesOf(kernel, a, processors) < cyclesOf(kernel, b, processors);
  });
}

bool hopper::leavesIdle(const MatmulKernel &kernel, const Schedule &schedule,
                        int64_t processors) {
  constexpr int64_t kLong = 1024;
  return known(kernel.k) >= kLong && 2 * tilesOf(kernel, schedule) < processors;
}
