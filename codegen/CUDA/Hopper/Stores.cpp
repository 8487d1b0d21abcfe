//===- Stores.cpp - results to global memory ------------------------------===//
//
// A result that has a tensor map is staged in shared memory, a strip of columns
// at a time: boxes of 64 rows and 128 bytes, swizzled as the map says so that
// the eight rows that a warp writes at once fall on different banks. While one
// strip is stored, the next is computed. The copies cut off what lies outside
// the matrix. Other results are stored pair by pair.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

/// Barrier 0 is that of all threads.
static constexpr int64_t kFirstOfWarpgroup = 1;

static bool stages(Emission &e) { return e.plan.stagedBytes > 0; }

/// The staging buffer of this warpgroup for a strip.
static Value stagedStrip(Emission &e, int64_t strip) {
  int64_t bytes = e.plan.stagedBytes, buffers = e.plan.stagingBuffers;
  return e.b.offset(
      e.shared, e.b.add(e.b.mul(e.consumer, buffers * bytes),
                        e.b.i32(e.plan.ringBytes() + strip % buffers * bytes)));
}

static void emitStaged(Emission &e, const ResultPlan &result,
                       const Pair &pair) {
  int64_t bytes = result.elementBytes();
  int64_t strip = pair.group / (kStrip / 8);
  int64_t start = 8 * (pair.group % (kStrip / 8)) * bytes;
  Value rowInEight = e.b.div(e.lane, 4);
  Value inWarpgroup =
      e.b.add(e.b.add(e.b.mul(e.warp, 16), rowInEight), 8 * pair.half);
  Value inRow = e.b.add(e.b.mul(e.b.rem(e.lane, 4), 2 * bytes),
                        e.b.i32(start % kSwizzleBytes));
  Value swizzled =
      e.b.createOrFold<arith::XOrIOp>(inRow, e.b.mul(rowInEight, 16));
  Value offset = e.b.add(e.b.mul(inWarpgroup, kSwizzleBytes), swizzled);
  Value target = e.b.offset(
      stagedStrip(e, strip),
      e.b.add(offset, result.stagedAt + start / kSwizzleBytes * kBoxBytes));
  LLVM::StoreOp::create(e.b, pair.value, target, 2 * bytes);
}

static Value elementAddress(Emission &e, const ResultPlan &result,
                            const Pair &pair) {
  Value columns = e.b.i64(e.plan.n.factor);
  Value row = e.b.toI64(pair.row);
  if (e.plan.isBatchedKernel())
    row = e.b.add(row, e.b.mul(e.b.toI64(e.tile.batch), e.b.toI64(e.m)));
  Value offset = e.b.add(e.b.mul(row, columns), e.b.toI64(pair.column));
  func::FuncOp func = e.kernel.func;
  return LLVM::GEPOp::create(
      e.b, e.b.pointerType(kGlobalMemory), result.element,
      e.buffers[func.getNumArguments() + result.result], ValueRange{offset});
}

static void emitDirect(Emission &e, const ResultPlan &result,
                       const Pair &pair) {
  int64_t bytes = result.elementBytes();
  Value address = elementAddress(e, result, pair);
  Value isInside = arith::AndIOp::create(e.b, e.b.isLess(pair.row, e.m),
                                         e.b.isLess(pair.column, e.n));
  e.ifThen(isInside, [&] {
    if (e.plan.n.factor % 2 == 0) {
      LLVM::StoreOp::create(e.b, pair.value, address, 2 * bytes);
      return;
    }
    auto element = [&](int64_t i) -> Value {
      return vector::ExtractOp::create(e.b, pair.value, i);
    };
    LLVM::StoreOp::create(e.b, element(0), address, bytes);
    Value hasNext = e.b.isLess(e.b.add(pair.column, 1), e.n);
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

static void emitCopies(Emission &e, const ResultPlan &result, int64_t strip) {
  int64_t columns = kSwizzleBytes / result.elementBytes();
  Value row = e.b.add(e.tile.m, e.b.mul(e.consumer, kRowsOfWgmma));
  Value source = stagedStrip(e, strip);
  for (int64_t box = 0; box < result.boxes(); ++box) {
    int64_t column = strip * kStrip + box * columns;
    SmallVector<Value> at{e.b.add(e.tile.n, column), row};
    if (e.plan.isBatchedKernel())
      at.push_back(e.tile.batch);
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        e.b, e.maps[*result.map],
        e.b.offset(source, result.stagedAt + box * kBoxBytes), at,
        /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
        /*predicate=*/Value());
  }
}

static void waitForReads(Emission &e, int64_t pending) {
  NVVM::CpAsyncBulkWaitGroupOp::create(e.b, pending, e.b.getUnitAttr());
}

/// How many strips may be on their way when the next one, perhaps the first of
/// the next tile, is staged.
static int64_t pendingStrips(Emission &e, int64_t strip) {
  int64_t strips = e.schedule.blockN / kStrip, buffers = e.plan.stagingBuffers;
  bool isLast = strip == strips - 1;
  return buffers == 1 || (isLast && strips % buffers) ? 0 : 1;
}

void hopper::endStrip(Emission &e, int64_t strip) {
  if (!stages(e))
    return;
  NVVM::FenceProxyOp::create(
      e.b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(e.b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  Value barrier = e.b.add(e.consumer, kFirstOfWarpgroup);
  emitBarrier(e, barrier, kWarpgroup);
  ifElected(e, [&] {
    for (const ResultPlan &result : e.plan.results)
      if (result.map)
        emitCopies(e, result, strip);
    NVVM::CpAsyncBulkCommitGroupOp::create(e.b);
    waitForReads(e, pendingStrips(e, strip));
  });
  // The next strip overwrites what has been read by now.
  emitBarrier(e, barrier, kWarpgroup);
}

void hopper::endStores(Emission &e) {
  if (stages(e))
    ifElected(e, [&] { waitForReads(e, 0); });
}
