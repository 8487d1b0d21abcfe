//===- KernelsAMX.cpp - products of bf16 on AMX tiles ---------------------===//

#include "runtime/Gemm/Isa.h"

#include <cstring>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mp::runtime::gemm;

namespace {
/// The operand of ldtilecfg for palette 1: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  TileConfig() {
    for (int tile = 0; tile != 8; ++tile) {
      rowBytes[tile] = 64;
      rows[tile] = 16;
    }
  }
};
} // namespace

/// The kernel gives a process the tiles' state only when it asks.
static bool mayUseTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

static bool isSupported() {
  static const bool supported = __builtin_cpu_supports("amx-tile") &&
                                __builtin_cpu_supports("amx-bf16") &&
                                __builtin_cpu_supports("avx512bw") &&
                                mayUseTiles();
  return supported;
}

static void begin() {
  static const TileConfig config;
  _tile_loadconfig(&config);
}

static void end() { _tile_release(); }

/// Two by two tiles of sums: 0 and 1 for rows 0-15, 2 and 3 for rows 16-31.
static void multiply(const Panel &a, const void *b, int64_t slices, float *c,
                     bool isFirst) {
  const size_t stride = kColumns * sizeof(float);
  float *lower = c + 16 * kColumns;
  if (isFirst) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + 16, stride);
    _tile_loadd(2, lower, stride);
    _tile_loadd(3, lower + 16, stride);
  }
  const char *left = static_cast<const char *>(a.data);
  const char *right = static_cast<const char *>(b);
  for (int64_t i = 0; i != slices; ++i, left += a.tile, right += 2048) {
    _tile_loadd(4, left, size_t(a.row));
    _tile_loadd(6, right, 64);
    _tile_loadd(7, right + 1024, 64);
    _tile_loadd(5, left + a.half, size_t(a.row));
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, stride);
  _tile_stored(1, c + 16, stride);
  _tile_stored(2, lower, stride);
  _tile_stored(3, lower + 16, stride);
}

const Isa mp::runtime::gemm::kAMX = {"amx", Element::BF16, isSupported,
                                     begin, end,           multiply};
