//===- Decide.cpp - from what was measured to the decision ----------------===//

#include "codegen/CUDA/Rows/Exchange.h"
#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Update/Measure.h"
#include "codegen/CUDA/Update/Numbers.h"
#include "codegen/CUDA/Update/ScalerStep.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/CudaUpdate.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mpopt::update;

static constexpr int64_t kThreads = 256;

namespace {
struct Totals {
  Value sumOfSquares, infs, nans;
};
} // namespace

/// Adds all parts up; every thread gets the totals.
static Totals addParts(ImplicitLocOpBuilder &b, Value parts, Value count) {
  Numbers n(b);
  Value thread = threadNumber(b);
  Value real = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
  Value none = constantOf(b, 0);
  auto loop = scf::ForOp::create(b, thread, count, constantOf(b, kThreads),
                                 ValueRange{real, none, none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto field = [&](int64_t offset, Type type) {
      return loadField(b, parts, loop.getInductionVar(), sizeof(CudaPart),
                       offset, type);
    };
    auto sums = loop.getRegionIterArgs();
    Type word = b.getI64Type();
    Value square = field(offsetof(CudaPart, sumOfSquares), b.getF64Type());
    SmallVector<Value> next = {
        n.add(sums[0], square),
        n.plus(sums[1], field(offsetof(CudaPart, infs), word)),
        n.plus(sums[2], field(offsetof(CudaPart, nans), word))};
    scf::YieldOp::create(b, next);
  }
  // The ops that join are clones of these.
  Operation *addReal = n.add(real, real).getDefiningOp();
  Operation *addWord = n.plus(none, none).getDefiningOp();
  SmallVector<Partial> partials = {{addReal, loop.getResult(0)},
                                   {addWord, loop.getResult(1)},
                                   {addWord, loop.getResult(2)}};
  joinThreads(b, {kThreads, 1, thread}, partials, 0);
  return {partials[0].value, partials[1].value, partials[2].value};
}

/// min(1, limit / (norm + 1e-6)) in f32; 1 without a limit.
static Value clipFactor(ImplicitLocOpBuilder &b, Value norm, Value limit) {
  Numbers n(b);
  Value one = n.real(1.0, limit);
  Value factor = n.div(limit, n.add(norm, n.real(1e-6f, norm)));
  Value clipped = n.select(n.isLess(factor, one), factor, one);
  Value isFree = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, limit,
                                       n.real(0.0, limit));
  return n.select(isFree, one, clipped);
}

static void emitDecision(ImplicitLocOpBuilder &b, const Totals &totals,
                         Value flags, Value state, Value decision,
                         Value limit) {
  Numbers n(b);
  Type single = b.getF32Type(), wide = b.getF64Type();
  Value scale =
      n.widen(wide, loadField(b, state, Value(), 0,
                              offsetof(mpopt::ScalerState, scale), single));
  Value inverse = n.narrow(single, n.div(n.real(1.0, scale), scale));
  Value norm = n.mul(n.root(totals.sumOfSquares), n.widen(wide, inverse));
  Value clip = clipFactor(b, n.narrow(single, norm), limit);
  Value isSkipped = n.differ(n.isEqual(flags, 0),
                             arith::ConstantOp::create(b, b.getBoolAttr(true)));
  storeField(b, n.mul(inverse, clip), decision, Value(), 0,
             offsetof(CudaDecision, multiplier));
  storeField(b, n.widen(b.getI32Type(), isSkipped), decision, Value(), 0,
             offsetof(CudaDecision, isSkipped));
}

EmittedKernel mlir::mp::cuda::emitDecide(MLIRContext &context,
                                         const mpopt::ScalerRule &rule) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  Numbers n(b);
  Type pointer = globalPointer(b);
  SmallVector<Value> arguments =
      startKernel(b, *module, "decide",
                  {pointer, pointer, pointer, b.getI64Type(), b.getF32Type()},
                  kThreads, 3 * kThreads / 32);
  Totals totals = addParts(b, arguments[0], arguments[3]);
  emitIf(b, n.isEqual(threadNumber(b), 0), [&] {
    auto flag = [&](Value count, uint64_t bit) {
      Value seen = n.isAbove(count, uint64_t(0));
      return n.times(n.widen(b.getI32Type(), seen), bit);
    };
    Value flags = n.either(flag(totals.infs, mpopt::SawInf),
                           flag(totals.nans, mpopt::SawNaN));
    emitDecision(b, totals, flags, arguments[1], arguments[2], arguments[4]);
    emitScalerStep(b, rule, arguments[1], flags);
  });
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = "decide";
  launch.block[0] = kThreads;
  return {std::move(module), launch};
}
