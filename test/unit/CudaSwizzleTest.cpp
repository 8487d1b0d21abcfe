//===- CudaSwizzleTest.cpp - the order of chunks in shared memory ---------===//
//
// Of every shape of tile: a row keeps its chunks, and what a warp reads at once
// lies in different banks.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Matmul/SharedTile.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace mlir::mp::cuda;

namespace {
class CudaSwizzleTest : public ::testing::Test {
protected:
  CudaSwizzleTest() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registerCudaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  /// Bytes from the tile's start to a chunk.
  int64_t offset(const SharedTile &tile, int64_t row, int64_t chunk) {
    KernelBuilder b(module->getLoc(), &context);
    b.setInsertionPointToEnd(module->getBody());
    Value inRow = tile.chunkOffset(b, b.i32(row), b.i32(chunk));
    return row * tile.rowBytes() + constantOf(inRow).value();
  }

  /// The banks (in groups of four) of so many rows and neighbouring chunks.
  size_t banks(const SharedTile &tile, int64_t firstRow, int64_t rows,
               int64_t firstChunk, int64_t chunks) {
    std::set<int64_t> found;
    for (int64_t row = firstRow; row < firstRow + rows; ++row)
      for (int64_t chunk = firstChunk; chunk < firstChunk + chunks; ++chunk)
        found.insert(offset(tile, row, chunk) / kChunkBytes % 8);
    return found.size();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static std::vector<SharedTile> allTiles() {
  std::vector<SharedTile> tiles;
  for (int64_t bytes : {2, 4})
    for (bool alongK : {false, true})
      for (int64_t extent : {16, 32, 64, 128, 256})
        for (int64_t depth : {32 / bytes, 64 / bytes, 128 / bytes})
          tiles.push_back({true, alongK, bytes, extent, depth, 0});
  return tiles;
}

TEST_F(CudaSwizzleTest, RowsKeepTheirChunks) {
  for (const SharedTile &tile : allTiles())
    for (int64_t row = 0; row < 16; ++row) {
      std::set<int64_t> found;
      for (int64_t chunk = 0; chunk < tile.rowChunks(); ++chunk)
        found.insert(offset(tile, row, chunk));
      EXPECT_EQ(found.size(), size_t(tile.rowChunks()));
      EXPECT_EQ(*found.begin(), row * tile.rowBytes());
      EXPECT_EQ(*found.rbegin(), (row + 1) * tile.rowBytes() - kChunkBytes);
    }
}

TEST_F(CudaSwizzleTest, ReadsMeetNoConflict) {
  for (const SharedTile &tile : allTiles()) {
    bool isByElements = !tile.alongK && tile.elementBytes == 4;
    for (int64_t chunk = 0; chunk < tile.rowChunks(); chunk += 2)
      if (isByElements)
        EXPECT_EQ(banks(tile, 4, 4, chunk, 2), 8u) << tile.rowBytes();
      else
        EXPECT_EQ(banks(tile, 8, 8, chunk, 1), 8u) << tile.rowBytes();
  }
}

TEST_F(CudaSwizzleTest, RepeatsAfterThePeriod) {
  for (const SharedTile &tile : allTiles())
    for (int64_t row = 0; row < 8; ++row)
      EXPECT_EQ(offset(tile, row + SharedTile::kSwizzlePeriod, 1) -
                    offset(tile, row, 1),
                SharedTile::kSwizzlePeriod * tile.rowBytes());
}
