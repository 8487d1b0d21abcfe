//===- Epilogue.cpp - from accumulators to results ------------------------===//
//
// Each thread holds pairs of neighbours in a row. The body of the epilogue runs
// on one pair at a time; its operands are read in pairs too. Pairs outside the
// matrix read the last ones inside; nothing stores them.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Arithmetic.h"
#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

namespace {
class Epilogue {
public:
  Epilogue(Emission &e, ArrayRef<Value> accumulators)
      : e(e), accumulators(accumulators) {}

  void run();

private:
  void runStrip(int64_t strip);
  void setRow(int64_t half);
  void setColumn(int64_t group);
  void runPair(int64_t group, int64_t half);
  Value load(const KernelOperand &operand);
  Value loadPair(const KernelOperand &operand, Value matrix, Value row,
                 Value rowLength);
  Value loadAt(const KernelOperand &operand, Type type, Value offset);
  SmallVector<Value> loopIndices();
  Value toPair(Value scalar);
  bool hasEvenRows() const { return e.plan.n.factor % 2 == 0; }

  Emission &e;
  ArrayRef<Value> accumulators;
  // Of the current pair.
  Value row, column;
  // Of what it reads: inside the matrix.
  Value readRow, readColumn, readNext;
};
} // namespace

Value Epilogue::toPair(Value scalar) {
  return vector::BroadcastOp::create(
      e.b, VectorType::get({2}, scalar.getType()), scalar);
}

/// Whether all tiles are whole along an extent.
static bool isWhole(const Extent &extent, int64_t tile) {
  return extent.size < 0 && extent.factor % tile == 0;
}

void Epilogue::setRow(int64_t half) {
  Value inWarp = e.b.add(e.b.div(e.lane, 4), 8 * half);
  Value inWarpgroup = e.b.add(e.b.mul(e.warp, 16), inWarp);
  row = e.b.add(e.b.add(e.tile.m, e.b.mul(e.consumer, kRowsOfWgmma)),
                inWarpgroup);
  readRow = isWhole(e.plan.m, e.schedule.blockM())
                ? row
                : e.b.minOf(row, e.b.sub(e.m, e.b.i32(1)));
}

void Epilogue::setColumn(int64_t group) {
  Value inGroup = e.b.mul(e.b.rem(e.lane, 4), 2);
  column = e.b.add(e.b.add(e.tile.n, inGroup), 8 * group);
  readColumn = column;
  if (!isWhole(e.plan.n, e.schedule.blockN))
    readColumn =
        e.b.minOf(column, e.b.i32(std::max<int64_t>(
                              e.plan.n.factor - (hasEvenRows() ? 2 : 1), 0)));
  readNext = e.b.minOf(e.b.add(column, 1), e.b.i32(e.plan.n.factor - 1));
}

/// i1 has a byte in memory.
static Type storedType(Type type, Builder &b) {
  return type.isInteger(1) ? b.getI8Type() : type;
}

Value Epilogue::loadAt(const KernelOperand &operand, Type type, Value offset) {
  Type element = storedType(operand.element, e.b);
  Value address =
      LLVM::GEPOp::create(e.b, e.b.pointerType(kGlobalMemory), element,
                          e.buffers[operand.argument], ValueRange{offset});
  Type stored = element;
  if (auto pair = dyn_cast<VectorType>(type))
    stored = pair.clone(element);
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  unsigned alignment = isa<VectorType>(type) ? 2 * bytes : bytes;
  Value loaded = LLVM::LoadOp::create(e.b, stored, address, alignment);
  if (stored == type)
    return loaded;
  Value zero = arith::ConstantOp::create(e.b, e.b.getZeroAttr(stored));
  return arith::CmpIOp::create(e.b, arith::CmpIPredicate::ne, loaded, zero);
}

/// Two elements of row `row` of matrix `matrix`.
Value Epilogue::loadPair(const KernelOperand &operand, Value matrix, Value row,
                         Value rowLength) {
  Value start = e.b.mul(e.b.toI64(row), rowLength);
  if (matrix)
    start = e.b.add(start, matrix);
  VectorType pair = VectorType::get({2}, operand.element);
  if (hasEvenRows())
    return loadAt(operand, pair, e.b.add(start, e.b.toI64(readColumn)));
  Value first =
      loadAt(operand, operand.element, e.b.add(start, e.b.toI64(readColumn)));
  Value second =
      loadAt(operand, operand.element, e.b.add(start, e.b.toI64(readNext)));
  return vector::FromElementsOp::create(e.b, pair, ValueRange{first, second});
}

Value Epilogue::load(const KernelOperand &operand) {
  Value batch = operand.batched ? e.b.toI64(e.tile.batch) : e.b.i64(0);
  Value columns = e.b.i64(e.plan.n.factor);
  switch (operand.access) {
  case Access::Element:
    return loadPair(operand, e.b.mul(batch, e.b.mul(e.b.toI64(e.m), columns)),
                    readRow, columns);
  case Access::Column:
    return loadPair(operand, e.b.mul(batch, columns), e.b.i32(0), columns);
  case Access::Row:
    return toPair(
        loadAt(operand, operand.element,
               e.b.add(e.b.mul(batch, e.b.toI64(e.m)), e.b.toI64(readRow))));
  case Access::Scalar:
    return toPair(loadAt(operand, operand.element, batch));
  }
  llvm_unreachable("unknown access");
}

/// The position of the pair in the loops (b, m, n) or (m, n).
SmallVector<Value> Epilogue::loopIndices() {
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(e.b, e.b.getIndexType(), value);
  };
  SmallVector<Value> indices;
  linalg::GenericOp epilogue = e.kernel.epilogue;
  if (epilogue.getNumLoops() == 3)
    indices.push_back(toPair(toIndex(e.tile.batch)));
  indices.push_back(toPair(toIndex(row)));
  indices.push_back(vector::FromElementsOp::create(
      e.b, VectorType::get({2}, e.b.getIndexType()),
      ValueRange{toIndex(column), toIndex(e.b.add(column, 1))}));
  return indices;
}

void Epilogue::runPair(int64_t group, int64_t half) {
  Value sum = vector::FromElementsOp::create(
      e.b, VectorType::get({2}, e.b.getF32Type()),
      accumulators.slice(4 * group + 2 * half, 2));
  SmallVector<Value> yielded;
  if (e.kernel.epilogue) {
    SmallVector<Value> inputs{sum};
    for (const KernelOperand &operand : e.kernel.operands)
      inputs.push_back(load(operand));
    VectorBody body{e.kernel.epilogue, 2, e.kernel.contract, loopIndices()};
    yielded = cloneOnVectors(e.b, body, inputs);
  }
  for (const ResultPlan &result : e.plan.results) {
    Value value = result.yielded ? yielded[*result.yielded] : sum;
    emitStore(e, result, {row, column, group, half, value});
  }
}

void Epilogue::runStrip(int64_t strip) {
  for (int64_t half : {0, 1}) {
    setRow(half);
    for (int64_t group = 0; group < kStrip / 8; ++group) {
      setColumn(strip * kStrip / 8 + group);
      runPair(strip * kStrip / 8 + group, half);
    }
  }
  endStrip(e, strip);
}

void Epilogue::run() {
  for (int64_t strip = 0; strip < e.schedule.blockN / kStrip; ++strip)
    runStrip(strip);
}

void hopper::emitEpilogue(Emission &e, ArrayRef<Value> accumulators) {
  Epilogue(e, accumulators).run();
}
