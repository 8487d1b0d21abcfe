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
struct Sums {
  Value sumOfSquares, infs, nans;
};
} // namespace

/// Adds all parts up; every thread gets the totals.
static Sums addParts(ImplicitLocOpBuilder &b, Value parts, Value count) {
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

/// A kernel with one thread that has something to do.
static EmittedKernel emitSmall(
    MLIRContext &context, const char *name, unsigned pointers,
    ArrayRef<Type> numbers, int32_t threads, int64_t shared,
    llvm::function_ref<void(ImplicitLocOpBuilder &, ArrayRef<Value>)> body) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  SmallVector<Type> types(pointers, globalPointer(b));
  types.append(numbers.begin(), numbers.end());
  SmallVector<Value> arguments =
      startKernel(b, *module, name, types, threads, shared);
  body(b, arguments);
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = name;
  launch.block[0] = uint32_t(threads);
  return {std::move(module), launch};
}

EmittedKernel mlir::mp::cuda::emitTotal(MLIRContext &context) {
  auto body = [](ImplicitLocOpBuilder &b, ArrayRef<Value> arguments) {
    Numbers n(b);
    Sums sums = addParts(b, arguments[0], arguments[2]);
    auto real = [&](Value count) -> Value {
      return arith::UIToFPOp::create(b, b.getF64Type(), count);
    };
    emitIf(b, n.isEqual(threadNumber(b), 0), [&] {
      auto put = [&](Value value, int64_t offset) {
        storeField(b, value, arguments[1], Value(), 0, offset);
      };
      put(sums.sumOfSquares, offsetof(CudaTotals, sumOfSquares));
      put(real(sums.infs), offsetof(CudaTotals, infs));
      put(real(sums.nans), offsetof(CudaTotals, nans));
    });
  };
  return emitSmall(context, "total", 2, IntegerType::get(&context, 64),
                   kThreads, 3 * kThreads / 32, body);
}

static Value totalOf(ImplicitLocOpBuilder &b, Value totals, int64_t offset) {
  return loadField(b, totals, Value(), 0, offset, b.getF64Type());
}

/// Bits of NonFinite (i32) of what was measured, and of a flag that does not
/// say which it is.
static Value flagsOf(ImplicitLocOpBuilder &b, Value totals, Value found) {
  Numbers n(b);
  auto bit = [&](Value isSeen, uint64_t value) {
    return n.times(n.widen(b.getI32Type(), isSeen), value);
  };
  auto isAny = [&](Value count) {
    return n.isGreater(count, n.real(0.0, count));
  };
  Value given = loadField(b, found, Value(), 0, 0, b.getF32Type());
  // A NaN is one, too.
  Value isGiven = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, given,
                                        n.real(0.0, given));
  Value infs = totalOf(b, totals, offsetof(CudaTotals, infs));
  Value nans = totalOf(b, totals, offsetof(CudaTotals, nans));
  Value flags = n.either(bit(isAny(infs), mpopt::SawInf),
                         bit(isAny(nans), mpopt::SawNaN));
  return n.either(flags, bit(isGiven, mpopt::SawInf));
}

static void count(ImplicitLocOpBuilder &b, Value decision, int64_t offset,
                  Value condition) {
  Numbers n(b);
  Type word = b.getI64Type();
  Value before = loadField(b, decision, Value(), 0, offset, word);
  storeField(b, n.plus(before, n.widen(word, condition)), decision, Value(), 0,
             offset);
}

static void emitDecision(ImplicitLocOpBuilder &b, ArrayRef<Value> arguments) {
  Value totals = arguments[0], found = arguments[2], limit = arguments[4];
  Value decision = arguments[3];
  Numbers n(b);
  Type single = b.getF32Type();
  Value scale = n.widen(b.getF64Type(),
                        loadField(b, arguments[1], Value(), 0, 0, single));
  Value inverse = n.narrow(single, n.div(n.real(1.0, scale), scale));
  Value scaled = n.root(totalOf(b, totals, offsetof(CudaTotals, sumOfSquares)));
  Value norm = n.mul(scaled, n.widen(b.getF64Type(), inverse));
  Value clip = clipFactor(b, n.narrow(single, norm), n.narrow(single, limit));
  Value isClean = n.isEqual(flagsOf(b, totals, found), 0);
  Value isSkipped =
      n.differ(isClean, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  auto put = [&](Value value, int64_t offset) {
    storeField(b, value, decision, Value(), 0, offset);
  };
  put(n.mul(inverse, clip), offsetof(CudaDecision, multiplier));
  put(n.widen(b.getI32Type(), isSkipped), offsetof(CudaDecision, isSkipped));
  put(scaled, offsetof(CudaDecision, norm));
  count(b, decision, offsetof(CudaDecision, applied), isClean);
  count(b, decision, offsetof(CudaDecision, skipped), isSkipped);
}

EmittedKernel mlir::mp::cuda::emitDecide(MLIRContext &context) {
  return emitSmall(context, "decide", 4, Float64Type::get(&context), 1, 0,
                   emitDecision);
}

EmittedKernel mlir::mp::cuda::emitNote(MLIRContext &context) {
  auto body = [](ImplicitLocOpBuilder &b, ArrayRef<Value> arguments) {
    Numbers n(b);
    Value flags = flagsOf(b, arguments[0], arguments[1]);
    Value before = loadField(b, arguments[2], Value(), 0, 0, b.getI32Type());
    storeField(b, n.either(before, flags), arguments[2], Value(), 0, 0);
  };
  return emitSmall(context, "note", 3, {}, 1, 0, body);
}

EmittedKernel mlir::mp::cuda::emitAdvance(MLIRContext &context,
                                          const mpopt::ScalerRule &rule) {
  auto body = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> arguments) {
    Value flags = loadField(b, arguments[1], Value(), 0, 0, b.getI32Type());
    emitScalerStep(b, rule, arguments[0], flags);
    storeField(b, constantOf32(b, 0), arguments[1], Value(), 0, 0);
  };
  return emitSmall(context, "advance", 2, {}, 1, 0, body);
}
