//===- MatrixOperations.cpp - mma.sync ------------------------------------===//
//
// Fragments as in the PTX ISA, "Matrix fragments for mma.m16n8k16" and
// "...k8". Sums are taken in f64 and rounded to f32 once: Tensor Cores round in
// a way of their own that is not documented, so that tests need a bound, or
// numbers whose sums are exact.
//
//===----------------------------------------------------------------------===//

#include "runtime/Numerics.h"
#include "test/emulator/Operations.h"

using namespace mlir::mp::emulator;

static double fromF16(uint16_t bits) { return mpopt::f16ToF64(bits); }
static double fromBF16(uint16_t bits) { return mpopt::bf16ToF64(bits); }

/// The upper 19 bits of an f32.
static double fromTF32(uint32_t bits) {
  bits &= ~uint32_t(0x1fff);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return double(value);
}

namespace {
/// d = a b + c for one warp.
struct Tile {
  double a[16][16] = {}, b[16][8] = {}, c[16][8] = {};

  double sum(unsigned i, unsigned j, unsigned depth) const {
    double value = c[i][j];
    for (unsigned k = 0; k != depth; ++k)
      value += a[i][k] * b[k][j];
    return value;
  }
};
} // namespace

/// Registers of two halves: four of a, two of b for k = 16; half of each for 8.
template <double (*Read)(uint16_t), unsigned Depth>
static void loadHalves(const Meeting &meeting, Tile &tile) {
  constexpr unsigned aCount = Depth / 4, bCount = Depth / 8;
  for (unsigned lane = 0; lane != warpLanes; ++lane) {
    unsigned group = lane / 4, pair = 2 * (lane % 4);
    auto half = [&](unsigned slot, unsigned e) {
      return Read(uint16_t(meeting.argument<uint32_t>(lane, slot) >> (16 * e)));
    };
    for (unsigned r = 0; r != aCount; ++r)
      for (unsigned e = 0; e != 2; ++e)
        tile.a[group + 8 * (r & 1)][pair + e + 8 * (r >> 1)] = half(r, e);
    for (unsigned r = 0; r != bCount; ++r)
      for (unsigned e = 0; e != 2; ++e)
        tile.b[pair + e + 8 * r][group] = half(aCount + r, e);
  }
}

/// Registers of one number: four of a and two of b for k = 8.
template <unsigned Depth>
static void loadTF32(const Meeting &meeting, Tile &tile) {
  constexpr unsigned aCount = Depth / 2, bCount = Depth / 4;
  for (unsigned lane = 0; lane != warpLanes; ++lane) {
    unsigned group = lane / 4, column = lane % 4;
    auto number = [&](unsigned slot) {
      return fromTF32(meeting.argument<uint32_t>(lane, slot));
    };
    for (unsigned r = 0; r != aCount; ++r)
      tile.a[group + 8 * (r & 1)][column + 4 * (r >> 1)] = number(r);
    for (unsigned r = 0; r != bCount; ++r)
      tile.b[column + 4 * r][group] = number(aCount + r);
  }
}

/// c and d are f32: rows group and group + 8, columns 2 (lane % 4) and the
/// next.
template <void (*Load)(const Meeting &, Tile &), unsigned Depth,
          unsigned Operands>
static void multiply(const Call &call) {
  Machine &machine = call.machine;
  machine.meet(call, ~uint32_t(0), [&](const Meeting &meeting) {
    machine.count("mma");
    if (meeting.mask != ~uint32_t(0))
      return; // the missing lane is a fault already
    Tile tile;
    Load(meeting, tile);
    auto forEach = [&](auto visit) {
      for (unsigned lane = 0; lane != warpLanes; ++lane)
        for (unsigned r = 0; r != 4; ++r)
          visit(lane, r, lane / 4 + 8 * (r >> 1), 2 * (lane % 4) + (r & 1));
    };
    forEach([&](unsigned lane, unsigned r, unsigned i, unsigned j) {
      tile.c[i][j] = double(meeting.argument<float>(lane, Operands + r));
    });
    forEach([&](unsigned lane, unsigned r, unsigned i, unsigned j) {
      meeting.setResult<float>(lane, r, float(tile.sum(i, j, Depth)));
    });
  });
}

llvm::ArrayRef<OperationRow> mlir::mp::emulator::matrixOperations() {
  static const OperationRow rows[] = {
      {"mma.m16n8k16.row.col.f32.f32",
       multiply<loadHalves<fromF16, 16>, 16, 6>},
      {"mma.m16n8k16.row.col.bf16", multiply<loadHalves<fromBF16, 16>, 16, 6>},
      {"mma.m16n8k8.row.col.f32.f32", multiply<loadHalves<fromF16, 8>, 8, 3>},
      {"mma.m16n8k8.row.col.bf16", multiply<loadHalves<fromBF16, 8>, 8, 3>},
      {"mma.m16n8k8.row.col.tf32", multiply<loadTF32<8>, 8, 6>},
      {"mma.m16n8k4.row.col.tf32", multiply<loadTF32<4>, 4, 3>},
  };
  return rows;
}
