//===- Factors.cpp - factors and tables of the update on CUDA -------------===//
//
// What runtime/Update/Factors.cpp computes on the host, from counters that only
// the device knows: in double, rounded once.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Update/Factors.h"
#include "codegen/CUDA/Rows/Values.h"
#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Update/Numbers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/CudaUpdate.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mpopt::update;

static constexpr int32_t kThreads = 128;
/// Counters in f32 are exact up to 2^24.
static constexpr int64_t kStepBits = 25;

namespace {
/// A number as the sum of two doubles.
struct Pair {
  Value high, low;
};

class FactorEmitter {
public:
  FactorEmitter(MLIRContext &context, bool readsRate)
      : module(ModuleOp::create(UnknownLoc::get(&context))),
        b(UnknownLoc::get(&context), &context), n(b), readsRate(readsRate) {}
  EmittedKernel emit();

private:
  Value narrow(Value value) { return n.narrow(b.getF32Type(), value); }
  Value one() { return arith::ConstantOp::create(b, b.getF64FloatAttr(1.0)); }
  Value hasOption(CudaOption option);
  Pair product(Pair x, Pair y);
  Value power(Value base, Value exponent);
  Value mix(Value x);
  Value tick();
  void put(Value value, int64_t offset);
  void writeDecay();
  void writeMoments();
  void writeKeys();

  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;
  Numbers n;
  bool readsRate;
  // Parameters.
  Value clocks, factors, decision, rate, tensorCount;
  Value learningRate, beta1, beta2, epsilon, decay, momentum, dampening;
  Value options, seed;
  // Of this thread.
  Value number, row;
  Value step; ///< i64: that of the coming update
};
} // namespace

Value FactorEmitter::hasOption(CudaOption option) {
  return n.isAbove(n.both(options, uint64_t(option)), uint64_t(0));
}

/// With an error of 2^-104: the high part is the product rounded.
Pair FactorEmitter::product(Pair x, Pair y) {
  Value high = n.mul(x.high, y.high);
  Value rest = n.fma(x.high, y.high, n.neg(high));
  rest = n.add(rest, n.add(n.mul(x.high, y.low), n.mul(x.low, y.high)));
  Value sum = n.add(high, rest);
  return {sum, n.sub(rest, n.sub(sum, high))};
}

/// pow(base, exponent), rounded as that of a good library.
Value FactorEmitter::power(Value base, Value exponent) {
  Value zero = n.real(0.0, base);
  SmallVector<Value> init = {one(), zero, base, zero, exponent};
  auto loop = scf::ForOp::create(b, constantOf(b, 0), constantOf(b, kStepBits),
                                 constantOf(b, 1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto values = loop.getRegionIterArgs();
  Pair result = {values[0], values[1]}, square = {values[2], values[3]};
  Value isOdd = n.isEqual(n.both(values[4], 1), 1);
  Pair more = product(result, square), next = product(square, square);
  SmallVector<Value> carried = {n.select(isOdd, more.high, result.high),
                                n.select(isOdd, more.low, result.low),
                                next.high, next.low, n.down(values[4], 1)};
  scf::YieldOp::create(b, carried);
  return loop.getResult(0);
}

/// The finalizer of SplitMix64, as in runtime/Update/Factors.cpp.
Value FactorEmitter::mix(Value x) {
  x = n.plus(x, 0x9e3779b97f4a7c15ULL);
  x = n.times(n.differ(x, n.down(x, 30)), 0xbf58476d1ce4e5b9ULL);
  x = n.times(n.differ(x, n.down(x, 27)), 0x94d049bb133111ebULL);
  return n.differ(x, n.down(x, 31));
}

/// Counts the update unless it is skipped; whether it is the first one.
Value FactorEmitter::tick() {
  Type single = b.getF32Type();
  auto counter = [&](int64_t offset) {
    return loadField(b, clocks, number, sizeof(CudaClock), offset,
                     globalPointer(b));
  };
  Value stepPointer = counter(offsetof(CudaClock, step));
  Value agePointer = counter(offsetof(CudaClock, age));
  Value before = loadField(b, stepPointer, Value(), 0, 0, single);
  Value age = loadField(b, agePointer, Value(), 0, 0, single);
  Value next = n.add(before, n.real(1.0, before));
  step = arith::FPToUIOp::create(b, b.getI64Type(), next);
  Value skipped = loadField(b, decision, Value(), 0,
                            offsetof(CudaDecision, isSkipped), b.getI32Type());
  emitIf(b, n.isEqual(skipped, 0), [&] {
    storeField(b, next, stepPointer, Value(), 0, 0);
    storeField(b, n.add(age, n.real(1.0, age)), agePointer, Value(), 0, 0);
  });
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, age,
                               n.real(0.0, age));
}

void FactorEmitter::put(Value value, int64_t offset) {
  storeField(b, value, factors, row, sizeof(CudaFactors), offset);
}

void FactorEmitter::writeDecay() {
  Value single = narrow(decay), zero = n.real(0.0, single);
  Value isDecoupled = hasOption(CudaOption::Decoupled);
  put(n.select(isDecoupled, zero, single), offsetof(CudaFactors, coupledDecay));
  Value keep = narrow(n.sub(one(), n.mul(learningRate, decay)));
  put(n.select(isDecoupled, keep, n.real(1.0, keep)),
      offsetof(CudaFactors, keep));
}

void FactorEmitter::writeMoments() {
  put(narrow(beta1), offsetof(CudaFactors, beta1));
  put(narrow(n.sub(one(), beta1)), offsetof(CudaFactors, oneMinusBeta1));
  put(narrow(beta2), offsetof(CudaFactors, beta2));
  put(narrow(n.sub(one(), beta2)), offsetof(CudaFactors, oneMinusBeta2));
  Value correction1 = n.sub(one(), power(beta1, step));
  Value correction2 = n.sub(one(), power(beta2, step));
  Value adamStep = narrow(n.div(learningRate, correction1));
  put(n.select(hasOption(CudaOption::IsAdam), adamStep, narrow(learningRate)),
      offsetof(CudaFactors, stepSize));
  put(narrow(n.root(correction2)), offsetof(CudaFactors, rootCorrection));
  put(narrow(epsilon), offsetof(CudaFactors, epsilon));
  put(narrow(momentum), offsetof(CudaFactors, momentum));
  put(narrow(n.sub(one(), dampening)),
      offsetof(CudaFactors, oneMinusDampening));
}

void FactorEmitter::writeKeys() {
  Value tensor = n.widen(
      b.getI64Type(), loadField(b, clocks, number, sizeof(CudaClock),
                                offsetof(CudaClock, number), b.getI32Type()));
  Value base = mix(seed), shifted = n.up(tensor, 8);
  for (int64_t lane = 0; lane < 3; ++lane) {
    Value key = mix(n.differ(base, n.either(shifted, uint64_t(lane))));
    put(mix(n.differ(key, step)), offsetof(CudaFactors, keys) + 8 * lane);
  }
}

EmittedKernel FactorEmitter::emit() {
  Type word = b.getI64Type(), real = b.getF64Type();
  SmallVector<Type> types(4, globalPointer(b));
  types.append({word, real, real, real, real, real, real, real, word, word});
  SmallVector<Value> a = startKernel(b, *module, "factors", types, kThreads);
  Value *const parameters[] = {
      &clocks,       &factors,   &decision, &rate,    &tensorCount,
      &learningRate, &beta1,     &beta2,    &epsilon, &decay,
      &momentum,     &dampening, &options,  &seed};
  for (auto [parameter, value] : llvm::zip_equal(parameters, a))
    *parameter = value;
  if (readsRate)
    learningRate =
        n.widen(real, loadField(b, rate, Value(), 0, 0, b.getF32Type()));
  number = scaled(b, blockNumber(b), kThreads, threadNumber(b));
  emitIf(b, n.isBelow(number, tensorCount), [&] {
    row = n.widen(word, loadField(b, clocks, number, sizeof(CudaClock),
                                  offsetof(CudaClock, row), b.getI32Type()));
    Value isFirst = tick();
    put(n.widen(b.getI32Type(), isFirst), offsetof(CudaFactors, isFirst));
    Value plus = arith::ConstantOp::create(b, b.getF32FloatAttr(1.0F));
    put(n.select(hasOption(CudaOption::Maximized), n.neg(plus), plus),
        offsetof(CudaFactors, sign));
    writeDecay();
    writeMoments();
    writeKeys();
  });
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = "factors";
  launch.grid.extent[0] = -1;
  launch.grid.tile[0] = kThreads;
  launch.block[0] = kThreads;
  return {std::move(module), launch};
}

EmittedKernel mlir::mp::cuda::emitFactors(MLIRContext &context,
                                          bool readsRate) {
  return FactorEmitter(context, readsRate).emit();
}

EmittedKernel mlir::mp::cuda::emitPoke(MLIRContext &context) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  Numbers n(b);
  SmallVector<Type> types(2 + kCudaPokeWords, b.getI64Type());
  types[0] = globalPointer(b);
  SmallVector<Value> arguments = startKernel(b, *module, "poke", types, 1);
  for (int64_t i = 0; i < kCudaPokeWords; ++i)
    emitIf(b, n.isAbove(arguments[1], uint64_t(i)), [&] {
      storeField(b, arguments[2 + i], arguments[0], Value(), 0, 8 * i);
    });
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = "poke";
  return {std::move(module), launch};
}
