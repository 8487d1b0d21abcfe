//===- UpdateEmitter.cpp - tables, chunks and memory of the update --------===//

#include "codegen/CUDA/Update/UpdateEmitter.h"
#include "codegen/CUDA/Rows/Values.h"
#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Update/Rounding.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/CudaUpdate.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using mpopt::update::Algorithm;
using mpopt::update::CudaChunk;
using mpopt::update::CudaDecision;
using mpopt::update::CudaFactors;
using mpopt::update::CudaRow;
using mpopt::update::Rounding;

namespace {
enum Table : unsigned { Rows, FactorRows, Chunks, Decision, TableCount };
} // namespace

UpdateEmitter::UpdateEmitter(MLIRContext &context, const UpdateKernel &kernel)
    : kernel(kernel), module(ModuleOp::create(UnknownLoc::get(&context))),
      b(UnknownLoc::get(&context), &context), n(b) {}

//===----------------------------------------------------------------------===//
// The function and its tables
//===----------------------------------------------------------------------===//

void UpdateEmitter::makeFunction() {
  SmallVector<Type> types(TableCount, globalPointer(b));
  tables = startKernel(b, *module, "update", types, kThreads);
}

Value UpdateEmitter::field(unsigned table, Value index, int64_t rowBytes,
                           int64_t offset, Type type) {
  return loadField(b, tables[table], index, rowBytes, offset, type);
}

Value UpdateEmitter::factor(int64_t offset) { return factors.lookup(offset); }

static Value wide(ImplicitLocOpBuilder &b, Value value) {
  return arith::ExtSIOp::create(b, b.getI64Type(), value);
}

void UpdateEmitter::readTables() {
  Type word = b.getI32Type();
  thread = threadNumber(b);
  Value block = blockNumber(b);
  tensor = wide(b, field(Chunks, block, sizeof(CudaChunk),
                         offsetof(CudaChunk, tensor), word));
  Value chunk = wide(b, field(Chunks, block, sizeof(CudaChunk),
                              offsetof(CudaChunk, chunk), word));
  begin = scaled(b, chunk, mpopt::update::kCudaChunk, Value());
  Value size = field(Rows, tensor, sizeof(CudaRow), offsetof(CudaRow, size),
                     b.getI64Type());
  end = arith::MinSIOp::create(
      b, size, n.plus(begin, uint64_t(mpopt::update::kCudaChunk)));
  auto array = [&](int64_t offset, std::optional<Format> format) -> Array {
    if (!format)
      return {};
    return {field(Rows, tensor, sizeof(CudaRow), offset, globalPointer(b)),
            format};
  };
  weight = array(offsetof(CudaRow, weight), kernel.weight);
  if (kernel.isSplit)
    weightLow = array(offsetof(CudaRow, weightLow), Format::BF16);
  gradient = array(offsetof(CudaRow, gradient), kernel.gradient);
  first = array(offsetof(CudaRow, first), kernel.first);
  second = array(offsetof(CudaRow, second), kernel.second);
  largest = array(offsetof(CudaRow, largest), kernel.largest);
  copy = array(offsetof(CudaRow, copy), kernel.copy);

  for (int64_t at = 0; at < int64_t(offsetof(CudaFactors, padding)); at += 4)
    factors[at] =
        field(FactorRows, tensor, sizeof(CudaFactors), at,
              at == offsetof(CudaFactors, isFirst) ? Type(word)
                                                   : Type(b.getF32Type()));
  for (int64_t lane = 0; lane < 3; ++lane)
    keys.push_back(field(FactorRows, tensor, sizeof(CudaFactors),
                         offsetof(CudaFactors, keys) + 8 * lane,
                         b.getI64Type()));
  multiplier = n.mul(factor(offsetof(CudaFactors, sign)),
                     field(Decision, Value(), 0,
                           offsetof(CudaDecision, multiplier), b.getF32Type()));
  Value skipped =
      field(Decision, Value(), 0, offsetof(CudaDecision, isSkipped), word);
  isSkipped = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, skipped,
                                    constantOf32(b, 0));
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

/// Whether every array starts at a multiple of 16 bytes, as chunks then do.
Value UpdateEmitter::isAligned() {
  Value bits = constantOf(b, 0);
  for (const Array &array :
       {weight, weightLow, gradient, first, second, largest, copy})
    if (array.pointer)
      bits = n.either(
          bits, LLVM::PtrToIntOp::create(b, b.getI64Type(), array.pointer));
  return n.isEqual(n.both(bits, 15), 0);
}

/// Whole vectors where all arrays allow them, then one element at a time.
void UpdateEmitter::emitLoops(llvm::function_ref<void(Value, int64_t)> body) {
  Value whole = n.both(n.minus(end, begin), uint64_t(-kVector));
  Value vectorEnd = n.select(isAligned(), n.plus(begin, whole), begin);
  auto loop = [&](Value from, Value to, int64_t width) {
    Value first = scaled(b, thread, width, from);
    auto op = scf::ForOp::create(b, first, to, constantOf(b, kThreads * width));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    body(op.getInductionVar(), width);
  };
  loop(begin, vectorEnd, kVector);
  loop(vectorEnd, end, 1);
}

Value UpdateEmitter::read(const Array &array, Value index, int64_t width) {
  if (!array.format)
    return {};
  Value value =
      loadElements(b, array.pointer, index, typeOf(b, *array.format), width);
  return *array.format == Format::F32 ? value : n.widen(b.getF32Type(), value);
}

Value UpdateEmitter::roundRandomly(Format format, Value value, Value index,
                                   int64_t width, Lane lane) {
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < width; ++i)
    steps.push_back(b.getI64IntegerAttr(i));
  Value numbers = broadcastTo(b, index, width);
  if (width > 1)
    numbers = n.plus(numbers,
                     arith::ConstantOp::create(
                         b, DenseElementsAttr::get(
                                cast<VectorType>(numbers.getType()), steps)));
  Value key = broadcastTo(b, keys[unsigned(lane)], width);
  Value random = randomWords(b, key, numbers);
  Value bits = format == Format::F16 ? roundF16Stochastic(b, value, random)
                                     : roundBF16Stochastic(b, value, random);
  return n.bitsAs(typeOf(b, format), bits);
}

void UpdateEmitter::write(const Array &array, Value value, Value index,
                          int64_t width, std::optional<Lane> lane) {
  if (!array.format)
    return;
  Format format = *array.format;
  if (format != Format::F32) {
    bool isRandom = lane && kernel.rounding == Rounding::Stochastic;
    value = isRandom ? roundRandomly(format, value, index, width, *lane)
                     : n.narrow(typeOf(b, format), value);
  }
  storeElements(b, value, array.pointer, index);
}

void UpdateEmitter::clearGradient(Value index, int64_t width) {
  Type type = mp::typeOf(typeOf(b, kernel.gradient), width);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  storeElements(b, zero, gradient.pointer, index);
}

UpdateEmitter::Elements UpdateEmitter::load(Value index, int64_t width) {
  Elements e;
  if (kernel.isSplit) {
    Type half = b.getIntegerType(16);
    e.weight = joinBF16(b, loadElements(b, weight.pointer, index, half, width),
                        loadElements(b, weightLow.pointer, index, half, width));
  } else {
    e.weight = read(weight, index, width);
  }
  e.gradient =
      n.mul(read(gradient, index, width), broadcastTo(b, multiplier, width));
  e.first = read(first, index, width);
  e.second = read(second, index, width);
  e.largest = read(largest, index, width);
  return e;
}

void UpdateEmitter::store(const Elements &e, Value index, int64_t width) {
  write(first, e.first, index, width, Lane::First);
  write(second, e.second, index, width, Lane::Second);
  write(largest, e.largest, index, width, std::nullopt);
  if (kernel.isSplit) {
    auto [high, low] = splitBF16(b, e.weight);
    storeElements(b, high, weight.pointer, index);
    storeElements(b, low, weightLow.pointer, index);
  } else {
    write(weight, e.weight, index, width, Lane::Weight);
  }
  write(copy, e.weight, index, width, std::nullopt);
}

void UpdateEmitter::updateElements(Value index, int64_t width) {
  Elements elements = load(index, width);
  step(elements);
  store(elements, index, width);
  if (kernel.clearsGradients)
    clearGradient(index, width);
}

EmittedKernel UpdateEmitter::emit() {
  makeFunction();
  readTables();
  auto branch = scf::IfOp::create(b, isSkipped, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    emitLoops(
        [&](Value index, int64_t width) { updateElements(index, width); });
    b.setInsertionPointToStart(branch.thenBlock());
    if (kernel.clearsGradients)
      emitLoops(
          [&](Value index, int64_t width) { clearGradient(index, width); });
  }
  gpu::ReturnOp::create(b);
  ::mp::runtime::CudaKernel launch{};
  launch.name = "update";
  launch.grid.extent[0] = -1;
  launch.block[0] = kThreads;
  return {std::move(module), launch};
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

std::string mlir::mp::cuda::whatIsWrong(const UpdateKernel &kernel) {
  bool isAdam = kernel.algorithm == Algorithm::Adam;
  if (kernel.isSplit && kernel.weight != UpdateKernel::Format::BF16)
    return "only a weight in bf16 can have its lower half beside it";
  if (isAdam && !(kernel.first && kernel.second))
    return "Adam needs a mean and a square";
  if (kernel.algorithm == Algorithm::Lion && !kernel.first)
    return "Lion needs a mean";
  if (!isAdam && (kernel.second || kernel.largest))
    return "only Adam has squares";
  if (kernel.isNesterov &&
      (kernel.algorithm != Algorithm::SGD || !kernel.first))
    return "Nesterov's rule needs SGD with momentum";
  return {};
}

FailureOr<EmittedKernel>
mlir::mp::cuda::emitUpdate(MLIRContext &context, const UpdateKernel &kernel) {
  if (std::string wrong = whatIsWrong(kernel); !wrong.empty())
    return emitError(UnknownLoc::get(&context), wrong);
  return UpdateEmitter(context, kernel).emit();
}
