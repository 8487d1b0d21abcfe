//===- Barriers.cpp - barriers between loads and products -----------------===//
//
// A stage of the ring has two barriers. "full": the loading thread arrives and
// says how many bytes it asked for; the phase ends when they are there.
// "empty": one thread of each computing warpgroup arrives when its products no
// longer read the stage. Round r of a stage waits for phase r, whose parity is
// that of r; "empty" starts one phase ahead, since at first every stage is
// free.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

static constexpr int64_t kBarrierBytes = 8;

Value hopper::fullBarrier(Emission &e, Value stage) {
  Value offset = e.b.add(e.b.mul(stage, kBarrierBytes), e.plan.barrierOffset());
  return e.b.offset(e.shared, offset);
}

Value hopper::emptyBarrier(Emission &e, Value stage) {
  return fullBarrier(e, e.b.add(stage, e.plan.stages));
}

void hopper::emitBarriers(Emission &e) {
  Value isFirst = e.b.isEqual(
      e.b.add(e.thread, e.b.mul(e.warpgroup, kWarpgroup)), e.b.i32(0));
  e.ifThen(isFirst, [&] {
    for (int64_t stage = 0; stage < e.plan.stages; ++stage) {
      NVVM::MBarrierInitOp::create(e.b, fullBarrier(e, e.b.i32(stage)),
                                   e.b.i32(1), Value());
      NVVM::MBarrierInitOp::create(e.b, emptyBarrier(e, e.b.i32(stage)),
                                   e.b.i32(e.schedule.consumers), Value());
    }
    NVVM::FenceMbarrierInitOp::create(e.b);
  });
  NVVM::BarrierOp::create(e.b);
}

void hopper::emitWait(Emission &e, Value barrier, Value parity) {
  // The hardware suspends the thread for up to so many nanoseconds at a time.
  constexpr int64_t kTicks = 10000000;
  NVVM::MBarrierTryWaitParityOp::create(e.b, barrier, parity, e.b.i32(kTicks));
}

RingPosition hopper::nextPosition(Emission &e, RingPosition position) {
  Value next = e.b.add(position.stage, 1);
  Value wraps = e.b.isEqual(next, e.b.i32(e.plan.stages));
  Value flipped = e.b.createOrFold<arith::XOrIOp>(position.parity, e.b.i32(1));
  return {e.b.select(wraps, e.b.i32(0), next),
          e.b.select(wraps, flipped, position.parity)};
}

void hopper::emitBarrier(Emission &e, Value id, int64_t threads) {
  NVVM::BarrierOp::create(e.b, TypeRange{}, id, e.b.i32(threads),
                          NVVM::BarrierReductionAttr(), Value());
}

void hopper::ifElected(Emission &e, llvm::function_ref<void()> body) {
  e.ifThen(e.b.isEqual(e.warp, e.b.i32(0)), [&] {
    Value elected = NVVM::ElectSyncOp::create(e.b, e.b.getI1Type(), Value());
    e.ifThen(elected, body);
  });
}
