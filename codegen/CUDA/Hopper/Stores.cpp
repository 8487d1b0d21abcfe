//===- Stores.cpp - results to global memory ------------------------------===//
//
// A result that has a tensor map is staged in the ring, whose loads are over by
// then: boxes of 64 rows and 128 bytes, swizzled as the map says so that the
// eight rows that a warp writes at once fall on different banks. The copies cut
// off what lies outside the matrix. Other results are stored pair by pair.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

static constexpr int kBoxBytes = kRowsOfWgmma * kSwizzleBytes;

/// Barrier 0 is that of all threads.
static constexpr int kAllComputing = 1, kFirstOfWarpgroup = 2;

static bool stages(Emission &e) {
  return llvm::any_of(e.plan.results,
                      [](const ResultPlan &r) { return r.map.has_value(); });
}

void hopper::beginStores(Emission &e) {
  // The other warpgroup may still multiply what this one would overwrite.
  if (stages(e) && e.schedule.consumers > 1)
    emitBarrier(e, e.i32(kAllComputing), kWarpgroup * e.schedule.consumers);
}

/// Where this warpgroup's rows of a result are staged.
static Value stagedRows(Emission &e, const ResultPlan &result) {
  int bytes = kRowsOfWgmma * e.schedule.blockN * result.elementBytes();
  Value computing = e.sub(e.warpgroup, e.i32(1));
  return e.sharedAt(e.shared, e.add(e.mul(computing, e.i32(bytes)),
                                    e.i32(result.sharedOffset)));
}

static void emitStaged(Emission &e, const ResultPlan &result,
                       const Pair &pair) {
  int bytes = result.elementBytes();
  int start = 8 * pair.group * bytes;
  Value rowInEight = e.div(e.lane, e.i32(4));
  Value inWarpgroup =
      e.add(e.add(e.mul(e.warp, e.i32(16)), rowInEight), e.i32(8 * pair.half));
  Value inRow = e.add(e.mul(e.rem(e.lane, e.i32(4)), e.i32(2 * bytes)),
                      e.i32(start % kSwizzleBytes));
  Value swizzled =
      e.b.createOrFold<arith::XOrIOp>(inRow, e.mul(rowInEight, e.i32(16)));
  Value offset = e.add(e.mul(inWarpgroup, e.i32(kSwizzleBytes)), swizzled);
  Value target =
      e.sharedAt(stagedRows(e, result),
                 e.add(offset, e.i32(start / kSwizzleBytes * kBoxBytes)));
  LLVM::StoreOp::create(e.b, pair.value, target, 2 * bytes);
}

static Value elementAddress(Emission &e, const ResultPlan &result,
                            const Pair &pair) {
  Value columns = e.i64(e.plan.n.factor);
  Value row = e.wide(pair.row);
  if (e.plan.isBatchedKernel())
    row = e.add(row, e.mul(e.wide(e.tile.batch), e.wide(e.m)));
  Value offset = e.add(e.mul(row, columns), e.wide(pair.column));
  func::FuncOp func = e.kernel.func;
  return LLVM::GEPOp::create(
      e.b, LLVM::LLVMPointerType::get(e.b.getContext(), kGlobal),
      result.element, e.buffers[func.getNumArguments() + result.result],
      ValueRange{offset});
}

static void emitDirect(Emission &e, const ResultPlan &result,
                       const Pair &pair) {
  int bytes = result.elementBytes();
  Value address = elementAddress(e, result, pair);
  Value isInside = arith::AndIOp::create(e.b, e.less(pair.row, e.m),
                                         e.less(pair.column, e.n));
  e.ifThen(isInside, [&] {
    if (e.plan.n.factor % 2 == 0) {
      LLVM::StoreOp::create(e.b, pair.value, address, 2 * bytes);
      return;
    }
    auto element = [&](int i) -> Value {
      return vector::ExtractOp::create(e.b, pair.value, i);
    };
    LLVM::StoreOp::create(e.b, element(0), address, bytes);
    Value hasNext = e.less(e.add(pair.column, e.i32(1)), e.n);
    e.ifThen(hasNext, [&] {
      Value next = LLVM::GEPOp::create(e.b, address.getType(), result.element,
                                       address, ArrayRef<LLVM::GEPArg>{1});
      LLVM::StoreOp::create(e.b, element(1), next, bytes);
    });
  });
}

void hopper::emitStore(Emission &e, const ResultPlan &result, Pair pair) {
  if (getElementTypeOrSelf(pair.value.getType()).isInteger(1))
    pair.value = arith::ExtUIOp::create(
        e.b, VectorType::get({2}, result.element), pair.value);
  if (result.map)
    emitStaged(e, result, pair);
  else
    emitDirect(e, result, pair);
}

static void emitCopies(Emission &e, const ResultPlan &result) {
  int columns = kSwizzleBytes / result.elementBytes();
  Value computing = e.sub(e.warpgroup, e.i32(1));
  Value row = e.add(e.tile.m, e.mul(computing, e.i32(kRowsOfWgmma)));
  Value source = stagedRows(e, result);
  for (int box = 0; box < e.schedule.blockN / columns; ++box) {
    SmallVector<Value> at{e.add(e.tile.n, e.i32(box * columns)), row};
    if (e.plan.isBatchedKernel())
      at.push_back(e.tile.batch);
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        e.b, e.maps[*result.map], e.sharedAt(source, e.i32(box * kBoxBytes)),
        at, /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
        /*predicate=*/Value());
  }
}

void hopper::endStores(Emission &e) {
  if (!stages(e))
    return;
  NVVM::FenceProxyOp::create(
      e.b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(e.b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  Value computing = e.sub(e.warpgroup, e.i32(1));
  emitBarrier(e, e.add(computing, e.i32(kFirstOfWarpgroup)), kWarpgroup);
  ifElected(e, [&] {
    for (const ResultPlan &result : e.plan.results)
      if (result.map)
        emitCopies(e, result);
    NVVM::CpAsyncBulkCommitGroupOp::create(e.b);
    // Shared memory must stay until it has been read.
    NVVM::CpAsyncBulkWaitGroupOp::create(e.b, 0, e.b.getUnitAttr());
  });
}
