//===- Measure.cpp - one read of the gradients on CUDA --------------------===//
//
// The sums of runtime/Update/KernelsImpl.h with the same bits: eight lanes add
// the squares of a block of 512 elements as its 64 sums do, in f32; only where
// that may overflow or lose, in double.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Update/Measure.h"
#include "codegen/CUDA/Rows/Exchange.h"
#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Update/Numbers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/CudaUpdate.h"
#include <limits>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mpopt::update;

static constexpr int64_t kThreads = 256, kLanes = 8, kBlockElements = 512;
static constexpr int64_t kGroups = kThreads / kLanes;
static constexpr int64_t kBlocks = kCudaChunk / kBlockElements;

namespace {
class MeasureEmitter {
public:
  MeasureEmitter(MLIRContext &context, Format format)
      : module(ModuleOp::create(UnknownLoc::get(&context))),
        b(UnknownLoc::get(&context), &context), n(b), format(format) {}
  EmittedKernel emit();

private:
  struct Found {
    Value sum, infs, nans; ///< f64, i64, i64
  };
  using Loop = llvm::function_ref<Value(Value, Value)>;

  void readBounds(Value state);
  Value loop(Value from, Value to, int64_t step, Value init, Loop body);
  Value load(Value index, int64_t width);
  Value loadVector(Value index);
  Value butterfly(Value value, ArrayRef<int64_t> masks);
  Value sumInSingle(Value begin, Value count);
  Value sumInDouble(Value begin, Value count);
  Value countWhere(Value begin, Value count, bool isNaN);
  Found measureBlock(Value begin, Value count);
  void storeSlots(Value number, const Found &found);
  void joinSlots(Value parts, Value block);

  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;
  Numbers n;
  Format format;
  Value thread, lane, group, chunkBegin, chunkEnd, pointer, isAligned;
  Value inverse, bound; ///< f32, f64
};
} // namespace

/// Joins the values of lanes whose numbers differ by each of the masks.
Value MeasureEmitter::butterfly(Value value, ArrayRef<int64_t> masks) {
  auto add = [&](Value x, Value y) {
    return isa<FloatType>(x.getType()) ? n.add(x, y) : n.plus(x, y);
  };
  for (int64_t mask : masks)
    value = add(value, shuffle(b, value, mask));
  return value;
}

Value MeasureEmitter::loop(Value from, Value to, int64_t step, Value init,
                           Loop body) {
  auto op = scf::ForOp::create(b, from, to, constantOf(b, step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Value next = body(op.getInductionVar(), op.getRegionIterArgs().front());
  scf::YieldOp::create(b, next);
  return op.getResult(0);
}

Value MeasureEmitter::load(Value index, int64_t width) {
  Value value = loadElements(b, pointer, index, typeOf(b, format), width);
  return format == Format::F32 ? value : n.widen(b.getF32Type(), value);
}

/// Eight elements, whether the gradient is aligned or not.
Value MeasureEmitter::loadVector(Value index) {
  Type type = VectorType::get({kLanes}, b.getF32Type());
  auto branch = scf::IfOp::create(b, type, isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, load(index, kLanes));
  b.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < kLanes; ++i)
    elements.push_back(load(n.plus(index, uint64_t(i)), 1));
  scf::YieldOp::create(
      b, vector::FromElementsOp::create(b, cast<VectorType>(type), elements)
             .getResult());
  return branch.getResult(0);
}

/// Lane q has the sums 8 q ... 8 q + 7 of 64. `count` is a multiple of 64.
Value MeasureEmitter::sumInSingle(Value begin, Value count) {
  Value zero = splatOf(b, b.getF32FloatAttr(0), kLanes);
  Value mine = scaled(b, lane, kLanes, begin);
  Value sums = loop(constantOf(b, 0), count, kLanes * kLanes, zero,
                    [&](Value at, Value sum) {
                      Value value = loadVector(n.plus(mine, at));
                      return n.add(sum, n.mul(value, value));
                    });
  SmallVector<Value> totals;
  for (int64_t i = 0; i < kLanes; ++i)
    totals.push_back(
        butterfly(vector::ExtractOp::create(b, sums, i), {2, 4, 1}));
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      totals[i] = n.add(totals[i], totals[i + half]);
  return totals.front();
}

Value MeasureEmitter::sumInDouble(Value begin, Value count) {
  Value zero = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
  auto addSquare = [&](Value index, Value sum) {
    Value value = n.widen(b.getF64Type(), load(index, 1));
    return n.add(sum, n.mul(value, value));
  };
  Value whole = n.both(count, uint64_t(-kLanes));
  Value sum =
      loop(constantOf(b, 0), whole, kLanes, zero, [&](Value at, Value total) {
        return addSquare(n.plus(n.plus(begin, at), lane), total);
      });
  sum = butterfly(sum, {4, 2, 1});
  return loop(whole, count, 1, sum, [&](Value at, Value total) {
    return addSquare(n.plus(begin, at), total);
  });
}

/// NaN, or what is inf once it is unscaled.
Value MeasureEmitter::countWhere(Value begin, Value count, bool isNaN) {
  Value found =
      loop(lane, count, kLanes, constantOf(b, 0), [&](Value at, Value total) {
        Value value = load(n.plus(begin, at), 1);
        Value unscaled = n.mul(value, inverse);
        Value magnitude = callIntrinsic(b, "llvm.fabs", unscaled);
        Value inf = n.real(std::numeric_limits<double>::infinity(), magnitude);
        Value isHit = isNaN ? n.isNaN(value)
                            : arith::CmpFOp::create(
                                  b, arith::CmpFPredicate::OEQ, magnitude, inf);
        return n.plus(total, n.widen(b.getI64Type(), isHit));
      });
  return butterfly(found, {4, 2, 1});
}

MeasureEmitter::Found MeasureEmitter::measureBlock(Value begin, Value count) {
  Value zero = constantOf(b, 0);
  Value isWhole = n.isEqual(n.both(count, 63), 0);
  Value single = sumInSingle(begin, n.select(isWhole, count, zero));
  Value isSafe = n.both(n.isGreater(single, n.real(1e-20f, single)),
                        n.isLess(single, n.real(1e30f, single)));
  isSafe = n.both(isSafe, isWhole);
  Value twice = sumInDouble(begin, n.select(isSafe, zero, count));
  Found found;
  found.sum = n.select(isSafe, n.widen(b.getF64Type(), single), twice);
  Value isFine = n.isLess(found.sum, bound);
  Value suspects = n.select(isFine, zero, count);
  found.infs = countWhere(begin, suspects, /*isNaN=*/false);
  found.nans = countWhere(begin, suspects, /*isNaN=*/true);
  return found;
}

void MeasureEmitter::storeSlots(Value number, const Found &found) {
  Value shared = sharedAddress(b, kSlots);
  emitIf(b, n.isEqual(lane, 0), [&] {
    storeElements(b, found.sum, shared, number);
    storeElements(b, found.infs, shared, n.plus(number, uint64_t(kBlocks)));
    storeElements(b, found.nans, shared, n.plus(number, uint64_t(2 * kBlocks)));
  });
}

/// One thread adds the blocks up in order.
void MeasureEmitter::joinSlots(Value parts, Value block) {
  gpu::BarrierOp::create(b);
  emitIf(b, n.isEqual(thread, 0), [&] {
    Value shared = sharedAddress(b, kSlots);
    auto total = [&](Type type, int64_t first, int64_t offset) {
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
      Value sum =
          loop(constantOf(b, 0), constantOf(b, kBlocks), 1, zero,
               [&](Value at, Value sum) -> Value {
                 Value slot = n.plus(at, uint64_t(first));
                 Value value = loadElements(b, shared, slot, type, 1);
                 return type.isF64() ? n.add(sum, value) : n.plus(sum, value);
               });
      storeField(b, sum, parts, block, sizeof(CudaPart), offset);
    };
    Type word = b.getI64Type();
    total(b.getF64Type(), 0, offsetof(CudaPart, sumOfSquares));
    total(word, kBlocks, offsetof(CudaPart, infs));
    total(word, 2 * kBlocks, offsetof(CudaPart, nans));
  });
}

/// 1 / scale, and what no sum of squares reaches unless an element overflows.
void MeasureEmitter::readBounds(Value state) {
  Type wide = b.getF64Type();
  Value scale = n.widen(wide, loadField(b, state, Value(), 0,
                                        offsetof(mpopt::ScalerState, scale),
                                        b.getF32Type()));
  inverse = n.narrow(b.getF32Type(), n.div(n.real(1.0, scale), scale));
  Value factor = n.widen(wide, inverse);
  Value one = n.real(1.0, factor);
  Value divisor = n.select(n.isLess(factor, one), one, factor);
  Value largest =
      n.div(n.real(std::numeric_limits<float>::max(), factor), divisor);
  bound = n.mul(largest, largest);
}

EmittedKernel MeasureEmitter::emit() {
  SmallVector<Type> types(4, globalPointer(b));
  SmallVector<Value> tables =
      startKernel(b, *module, "measure", types, kThreads, 3 * kBlocks);
  thread = threadNumber(b);
  lane = n.both(thread, kLanes - 1);
  group = n.down(thread, 3);
  Value block = blockNumber(b);
  auto chunkField = [&](int64_t offset) {
    return n.widen(b.getI64Type(),
                   loadField(b, tables[1], block, sizeof(CudaChunk), offset,
                             b.getI32Type()));
  };
  Value tensor = chunkField(offsetof(CudaChunk, tensor));
  chunkBegin =
      scaled(b, chunkField(offsetof(CudaChunk, chunk)), kCudaChunk, Value());
  chunkEnd = loadField(b, tables[0], tensor, sizeof(CudaRow),
                       offsetof(CudaRow, size), b.getI64Type());
  pointer = loadField(b, tables[0], tensor, sizeof(CudaRow),
                      offsetof(CudaRow, gradient), globalPointer(b));
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
  isAligned = n.isEqual(n.both(address, 15), 0);
  readBounds(tables[2]);

  for (int64_t i = 0; i < kBlocks / kGroups; ++i) {
    Value number = n.plus(group, uint64_t(i * kGroups));
    Value begin = scaled(b, number, kBlockElements, chunkBegin);
    Value left = n.minus(chunkEnd, begin);
    Value count =
        arith::MinSIOp::create(b, left, constantOf(b, kBlockElements));
    count = arith::MaxSIOp::create(b, count, constantOf(b, 0));
    storeSlots(number, measureBlock(begin, count));
  }
  joinSlots(tables[3], block);
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = "measure";
  launch.grid.extent[0] = -1;
  launch.block[0] = kThreads;
  return {std::move(module), launch};
}

EmittedKernel mlir::mp::cuda::emitMeasure(MLIRContext &context,
                                          Format gradient) {
  return MeasureEmitter(context, gradient).emit();
}
