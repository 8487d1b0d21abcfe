//===- Producer.cpp - the loop of the loading warpgroup -------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

Value hopper::operandInStage(Emission &e, Value stage, bool isLhs) {
  Value offset = e.b.mul(stage, e.schedule.stageBytes());
  if (!isLhs)
    offset = e.b.add(offset, e.schedule.lhsBytes());
  return e.b.offset(e.shared, offset);
}

/// A block's own shared memory as part of that of its cluster, which is where
/// PTX before 8.6 lets TMA load to.
static Value inCluster(Emission &e, Value address) {
  auto type = e.b.pointerType(kClusterMemory);
  return LLVM::AddrSpaceCastOp::create(e.b, type, address);
}

/// Asks for the tile of one operand at column `k` of the contraction.
static void emitLoad(Emission &e, Value stage, Value k, bool isLhs) {
  const OperandPlan &operand = isLhs ? e.plan.lhs : e.plan.rhs;
  Value target = operandInStage(e, stage, isLhs);
  Value start = isLhs ? e.tile.m : e.tile.n;
  for (int64_t copy = 0; copy < operand.copies(); ++copy) {
    Value piece = e.b.add(start, copy * kStep);
    SmallVector<Value> at{k, piece};
    if (!operand.isKMajor)
      std::swap(at[0], at[1]);
    if (operand.isBatched)
      at.push_back(e.tile.batch);
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        e.b, inCluster(e, e.b.offset(target, copy * operand.copyBytes())),
        e.maps[isLhs ? 0 : 1], at, fullBarrier(e, stage), ValueRange{},
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
        NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
        /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
  }
}

static void emitLoads(Emission &e, Value step, RingPosition position) {
  emitWait(e, emptyBarrier(e, position.stage), position.parity);
  NVVM::MBarrierArriveExpectTxOp::create(
      e.b, TypeRange{}, fullBarrier(e, position.stage),
      e.b.i32(e.schedule.stageBytes()), NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, /*predicate=*/Value());
  Value k = e.b.mul(step, kStep);
  emitLoad(e, position.stage, k, /*isLhs=*/true);
  emitLoad(e, position.stage, k, /*isLhs=*/false);
}

/// All steps of one tile; returns where the next one starts.
static RingPosition emitTileLoads(Emission &e, RingPosition start) {
  auto loop = scf::ForOp::create(
      e.b, e.b.i32(0), e.steps, e.b.i32(1),
      ValueRange{start.stage, start.parity},
      [&](OpBuilder &, Location, Value step, ValueRange carried) {
        RingPosition position{carried[0], carried[1]};
        OpBuilder::InsertionGuard guard(e.b);
        e.b.setInsertionPointToEnd(step.getParentBlock());
        emitLoads(e, step, position);
        RingPosition next = nextPosition(e, position);
        scf::YieldOp::create(e.b, ValueRange{next.stage, next.parity});
      });
  return {loop.getResult(0), loop.getResult(1)};
}

void hopper::emitProducer(Emission &e) {
  NVVM::SetMaxRegisterOp::create(e.b, e.schedule.producerRegisters,
                                 NVVM::SetMaxRegisterAction::decrease);
  ifElected(e, [&] {
    forTiles(e, {e.b.i32(0), e.b.i32(1)},
             [&](RingPosition position) { return emitTileLoads(e, position); });
  });
}
