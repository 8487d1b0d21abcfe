//===- SharedTile.cpp - an operand's tile in shared memory ----------------===//

#include "codegen/CUDA/Matmul/SharedTile.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

Value SharedTile::chunkOffset(KernelBuilder &b, Value row, Value chunk) const {
  int64_t rowsPerLine = std::max<int64_t>(1, 8 / rowChunks());
  int64_t shifts = std::min<int64_t>(8, rowChunks());
  Value line = b.div(row, rowsPerLine);
  // Single elements: 8 neighbours, two chunks, of 4 rows are read at once.
  bool isByElements = !alongK && elementBytes == 4;
  Value shift =
      isByElements ? b.mul(b.rem(line, shifts / 2), 2) : b.rem(line, shifts);
  return b.mul(b.xorOf(chunk, shift), kChunkBytes);
}

static SharedTile makeTile(const MatmulOperand &operand, bool isLhs,
                           int64_t extent, int64_t depth) {
  SharedTile tile;
  tile.isLhs = isLhs;
  tile.alongK = operand.transposed != isLhs;
  tile.elementBytes = bytesOf(operand.element);
  tile.extent = extent;
  tile.depth = depth;
  tile.base = 0;
  return tile;
}

SharedTile cuda::lhsTile(const MatmulKernel &kernel,
                         const MatmulSchedule &schedule) {
  return makeTile(kernel.lhs, true, schedule.blockM, schedule.blockK);
}

SharedTile cuda::rhsTile(const MatmulKernel &kernel,
                         const MatmulSchedule &schedule) {
  SharedTile tile =
      makeTile(kernel.rhs, false, schedule.blockN, schedule.blockK);
  tile.base = lhsTile(kernel, schedule).bytes();
  return tile;
}

int64_t cuda::stageBytes(const MatmulKernel &kernel,
                         const MatmulSchedule &schedule) {
  SharedTile rhs = rhsTile(kernel, schedule);
  return rhs.base + rhs.bytes();
}
