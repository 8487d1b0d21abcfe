//===- Products.cpp - the loop of a computing warpgroup -------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

//===----------------------------------------------------------------------===//
// Matrix descriptors: what wgmma is told of a matrix in shared memory
//===----------------------------------------------------------------------===//

// Bit positions. Addresses and strides are in units of 16 bytes, 14 bits each.
static constexpr int64_t kUnit = 16;
static constexpr int64_t kLeadingShift = 16, kStrideShift = 32,
                         kLayoutShift = 62;
static constexpr uint64_t kSwizzle128 = 1;

/// All but the address. With k inside, the stride leads from eight rows to the
/// next eight, and one swizzled row holds all of k. Otherwise the stride leads
/// from eight steps along k to the next eight, and the leading offset from 64
/// rows or columns to the next 64: one copy.
static uint64_t descriptorOf(const OperandPlan &operand) {
  uint64_t leading = operand.isKMajor ? 1 : operand.copyBytes() / kUnit;
  uint64_t stride = kAtomBytes / kUnit;
  return leading << kLeadingShift | stride << kStrideShift |
         kSwizzle128 << kLayoutShift;
}

/// Bytes from one k16 slice of a tile to the next.
static int64_t sliceBytes(const OperandPlan &operand) {
  return operand.isKMajor ? kDepthOfWgmma * 2 : kDepthOfWgmma * kSwizzleBytes;
}

static Value emitDescriptor(Emission &e, const OperandPlan &operand,
                            Value address) {
  constexpr int64_t kAddressMask = 0x3ffff;
  Value bytes = LLVM::PtrToIntOp::create(e.b, e.b.getI32Type(), address);
  Value masked = e.b.createOrFold<arith::AndIOp>(bytes, e.b.i32(kAddressMask));
  Value units = e.b.createOrFold<arith::ShRUIOp>(masked, e.b.i32(4));
  return e.b.createOrFold<arith::OrIOp>(e.b.toI64(units),
                                        e.b.i64(descriptorOf(operand)));
}

/// The rows of lhs that this warpgroup multiplies.
static Value lhsOfWarpgroup(Emission &e, Value stage) {
  const OperandPlan &lhs = e.plan.lhs;
  int64_t bytes = lhs.isKMajor ? kRowsOfWgmma * kSwizzleBytes : lhs.copyBytes();
  return e.b.offset(operandInStage(e, stage, true), e.b.mul(e.consumer, bytes));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static Type accumulatorType(Emission &e) {
  SmallVector<Type> registers(e.schedule.blockN / 2, e.b.getF32Type());
  return LLVM::LLVMStructType::getLiteral(e.b.getContext(), registers);
}

static Value emitWgmma(Emission &e, Value accumulators, Value lhs, Value rhs,
                       bool isFirst) {
  auto type = e.kernel.lhs.element.isF16() ? NVVM::WGMMATypes::f16
                                           : NVVM::WGMMATypes::bf16;
  // "row" is k inside for lhs, "col" is k inside for rhs.
  auto layoutA =
      e.plan.lhs.isKMajor ? NVVM::MMALayout::row : NVVM::MMALayout::col;
  auto layoutB =
      e.plan.rhs.isKMajor ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape = NVVM::MMAShapeAttr::get(e.b.getContext(), kRowsOfWgmma,
                                       e.schedule.blockN, kDepthOfWgmma);
  MLIRContext *context = e.b.getContext();
  auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
  auto scaleD = isFirst ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one;
  return NVVM::WgmmaMmaAsyncOp::create(
      e.b, accumulators.getType(), accumulators, lhs, rhs, shape,
      NVVM::WGMMATypesAttr::get(context, type),
      NVVM::WGMMATypesAttr::get(context, type),
      NVVM::WGMMATypesAttr::get(context, NVVM::WGMMATypes::f32),
      NVVM::WGMMAScaleOutAttr::get(context, scaleD), one, one,
      NVVM::MMALayoutAttr::get(context, layoutA),
      NVVM::MMALayoutAttr::get(context, layoutB), NVVM::MMAIntOverflowAttr());
}

/// Waits for a stage and starts its products, one group.
static Value emitStep(Emission &e, RingPosition position, Value accumulators,
                      bool isFirst) {
  emitWait(e, fullBarrier(e, position.stage), position.parity);
  Value lhs = emitDescriptor(e, e.plan.lhs, lhsOfWarpgroup(e, position.stage));
  Value rhs =
      emitDescriptor(e, e.plan.rhs, operandInStage(e, position.stage, false));
  NVVM::WgmmaFenceAlignedOp::create(e.b);
  for (int64_t slice = 0; slice < kStep / kDepthOfWgmma; ++slice) {
    Value a = e.b.add(lhs, e.b.i64(slice * sliceBytes(e.plan.lhs) / kUnit));
    Value c = e.b.add(rhs, e.b.i64(slice * sliceBytes(e.plan.rhs) / kUnit));
    accumulators = emitWgmma(e, accumulators, a, c, isFirst && slice == 0);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(e.b);
  return accumulators;
}

void hopper::emitRelease(Emission &e, Value stage) {
  e.ifThen(e.b.isEqual(e.thread, e.b.i32(0)), [&] {
    NVVM::MBarrierArriveOp::create(e.b, TypeRange{}, emptyBarrier(e, stage),
                                   /*count=*/Value());
  });
}

SmallVector<Value> hopper::emitProducts(Emission &e, RingPosition &position) {
  Value none = LLVM::UndefOp::create(e.b, accumulatorType(e));
  Value begun = emitStep(e, position, none, /*isFirst=*/true);
  RingPosition second = nextPosition(e, position);
  auto loop = scf::ForOp::create(
      e.b, e.b.i32(1), e.steps, e.b.i32(1),
      ValueRange{begun, second.stage, second.parity, position.stage},
      [&](OpBuilder &, Location, Value step, ValueRange carried) {
        OpBuilder::InsertionGuard guard(e.b);
        e.b.setInsertionPointToEnd(step.getParentBlock());
        RingPosition current{carried[1], carried[2]};
        Value sum = emitStep(e, current, carried[0], /*isFirst=*/false);
        // The products of the step before are done.
        NVVM::WgmmaWaitGroupSyncOp::create(e.b, 1);
        emitRelease(e, carried[3]);
        RingPosition next = nextPosition(e, current);
        scf::YieldOp::create(
            e.b, ValueRange{sum, next.stage, next.parity, current.stage});
      });
  NVVM::WgmmaWaitGroupSyncOp::create(e.b, 0);
  emitRelease(e, loop.getResult(3));
  position = {loop.getResult(1), loop.getResult(2)};
  SmallVector<Value> accumulators;
  for (int64_t i = 0; i < e.schedule.blockN / 2; ++i)
    accumulators.push_back(
        LLVM::ExtractValueOp::create(e.b, loop.getResult(0), i));
  return accumulators;
}
