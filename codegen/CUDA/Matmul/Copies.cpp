//===- Copies.cpp - from global memory into a stage of the ring -----------===//

#include "codegen/CUDA/Matmul/Copies.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

int64_t cuda::pieceBytes(int64_t elements, int64_t elementBytes,
                         int64_t tileElements) {
  for (int64_t bytes : {16, 8, 4})
    if (elements * elementBytes % bytes == 0 &&
        tileElements * elementBytes % bytes == 0)
      return bytes;
  return elementBytes;
}

static const MatmulOperand &operandOf(const Frame &frame,
                                      const SharedTile &tile) {
  return tile.isLhs ? frame.kernel.lhs : frame.kernel.rhs;
}

OperandCopy::OperandCopy(Frame &frame, const SharedTile &tile, Value end)
    : frame(frame), b(frame.b), tile(tile), end(end) {
  const MatmulOperand &operand = operandOf(frame, tile);
  const Size &along = tile.isLhs ? frame.m : frame.n;
  Value start = tile.isLhs ? frame.tile.row : frame.tile.column;
  int64_t elements = tile.alongK ? frame.k.fixed : along.fixed;
  width = pieceBytes(elements, tile.elementBytes, tile.rowElements());
  rowStride = elements * tile.elementBytes;

  base = frame.arguments[operand.argument];
  if (operand.batched) {
    Value rows = tile.alongK ? along.value : frame.k.value;
    Value bytes = b.mul(b.toI64(rows), rowStride);
    base = b.offset(base, b.mul(frame.tile.batch, bytes));
  }
  int64_t startStride = tile.alongK ? rowStride : tile.elementBytes;
  base = b.offset(base, b.mul(b.toI64(start), startStride));
  makePieces();
}

void OperandCopy::makePieces() {
  int64_t threads = frame.schedule.threads();
  int64_t perRow = tile.rowBytes() / width;
  int64_t total = perRow * tile.rows();
  if (total < threads)
    mayCopy = b.isLess(frame.thread, b.i32(total));
  firstRow = b.div(frame.thread, perRow);
  Value firstColumn = b.mul(b.rem(frame.thread, perRow), width);
  for (int64_t i = 0; i * threads < total; ++i) {
    Piece piece;
    piece.row = i * threads / perRow;
    piece.column = b.add(firstColumn, i * threads % perRow * width);
    Value row = b.add(firstRow, piece.row % SharedTile::kSwizzlePeriod);
    Value chunk = b.div(piece.column, kChunkBytes);
    Value inRow = b.add(tile.chunkOffset(b, row, chunk),
                        b.rem(piece.column, kChunkBytes));
    int64_t rowsBehind = piece.row * tile.rowBytes() + tile.base;
    piece.shared =
        b.add(b.add(b.mul(firstRow, tile.rowBytes()), inRow), rowsBehind);
    piece.inside = insideOf(piece);
    pieces.push_back(piece);
  }
}

/// Whether a piece lies inside the operand along m or n.
Value OperandCopy::insideOf(const Piece &piece) {
  const Size &along = tile.isLhs ? frame.m : frame.n;
  if (along.isMultipleOf(tile.extent))
    return {};
  Value start = tile.isLhs ? frame.tile.row : frame.tile.column;
  Value position = tile.alongK ? b.add(firstRow, piece.row)
                               : b.div(piece.column, tile.elementBytes);
  return b.isLess(b.add(start, position), along.value);
}

/// Whether a piece lies before the end of the steps; `first` is the step's
/// first position along k.
Value OperandCopy::insideOfK(const Piece &piece, Value first) {
  if (frame.k.isMultipleOf(tile.depth))
    return b.isLess(first, end);
  Value position = tile.alongK ? b.div(piece.column, tile.elementBytes)
                               : b.add(firstRow, piece.row);
  return b.isLess(b.add(first, position), end);
}

Value OperandCopy::globalAddress(Value step) {
  int64_t perStep = tile.depth * (tile.alongK ? tile.elementBytes : rowStride);
  Value address = b.offset(base, b.mul(b.toI64(step), perStep));
  return b.offset(address, b.mul(b.toI64(firstRow), rowStride));
}

/// Copies an element through a register.
static void copyPlain(KernelBuilder &b, int64_t width, Value global,
                      Value shared, Value condition) {
  Type type = b.getIntegerType(8 * width);
  auto guarded = scf::IfOp::create(b, type, condition, /*withElse=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(b, b.load(type, global, width));
    b.setInsertionPointToStart(guarded.elseBlock());
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(type, 0));
    scf::YieldOp::create(b, zero);
  }
  b.store(guarded.getResult(0), shared, width);
}

void OperandCopy::copy(const Piece &piece, Value global, Value shared,
                       Value condition) {
  if (width < 4)
    return copyPlain(b, width, global, shared, condition);
  // A copy of no bytes reads nothing and fills the piece with zeros.
  Value bytes = b.select(condition, b.i32(width), b.i32(0));
  auto cache = width == 16 ? NVVM::LoadCacheModifierKind::CG
                           : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(b, shared, global, static_cast<uint32_t>(width),
                          cache, bytes);
}

void OperandCopy::issue(Value step, Value stage) {
  OpBuilder::InsertionGuard guard(b);
  if (mayCopy) {
    auto guarded = scf::IfOp::create(b, mayCopy, /*withElseRegion=*/false);
    b.setInsertionPointToStart(guarded.thenBlock());
  }
  Value first = b.mul(step, tile.depth);
  Value global = globalAddress(step);
  Value shared = b.offset(frame.shared, stage);
  for (const Piece &piece : pieces) {
    Value condition = b.andOf(piece.inside, insideOfK(piece, first));
    Value from = b.offset(b.offset(global, b.toI64(piece.column)),
                          piece.row * rowStride);
    copy(piece, from, b.offset(shared, piece.shared), condition);
  }
}
