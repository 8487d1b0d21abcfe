//===- CostModel.cpp - the arithmetic of costs ----------------------------===//

#include "passes/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir::mp;
using llvm::StringRef;

namespace {
/// Bytes per element of types that products are made of. Products of 8-bit
/// operands come out in 16 bits.
struct TypeBytes {
  StringRef type;
  double operand, result;
};

/// One product, with its sizes as they are or filled up to blocks.
struct Sizes {
  double m, n, k;
  double least() const { return std::min({m, n, k}); }
  double flops() const { return 2 * m * n * k; }
  /// Operations of the part whose smallest size is at most `limit`.
  double flopsWithin(double limit) const {
    double largest = std::max({m, n, k});
    // Neither the smallest nor the largest; the sums are exact.
    double middle = m + n + k - least() - largest;
    return 2 * std::min(least(), limit) * middle * largest;
  }
};
} // namespace

static const TypeBytes kTypeBytes[] = {
    {"f64", 8, 8},  {"f32", 4, 4}, {"tf32", 4, 4},
    {"bf16", 2, 2}, {"f16", 2, 2}, {"fp8", 1, 2},
};

static TypeBytes bytesOf(StringRef type) {
  for (const TypeBytes &row : kTypeBytes)
    if (row.type == type)
      return row;
  return kTypeBytes[0];
}

StringRef mlir::mp::stringifyBound(Bound bound) {
  static const StringRef names[] = {"launch bound", "memory bound",
                                    "compute bound"};
  return names[unsigned(bound)];
}

bool ShapeClass::holds(int64_t products, int64_t m, int64_t n,
                       int64_t k) const {
  Sizes sizes{double(m), double(n), double(k)};
  double work = sizes.flops() * (batch > 1 ? 1 : products);
  return products >= batch && sizes.least() <= least && work <= flops;
}

const MatmulRates *CostModel::ratesOf(StringRef type) const {
  const auto *row = llvm::find_if(
      types, [&](const MatmulRates &rates) { return rates.type == type; });
  return row == types.end() ? nullptr : row;
}

double CostModel::castSeconds(StringRef from, StringRef to,
                              int64_t elements) const {
  auto rate = casts.find((from + "-" + to).str());
  double bytes = (bytesOf(from).operand + bytesOf(to).operand) * elements;
  return bytes / (rate == casts.end() ? bandwidth : rate->second) + launch;
}

static double filled(int64_t size, int64_t block) {
  return double(llvm::divideCeil(size, block)) * block;
}

/// Seconds of the work alone. Each class is a roof: a product takes at least as
/// long as the part of it that is within the class's limits. So a product never
/// gets cheaper by growing out of a slow class.
static double workSeconds(const CostModel &model, const MatmulRates &rates,
                          int64_t batch, const Sizes &sizes) {
  double seconds = 0;
  for (auto [shape, rate] : llvm::zip_equal(model.classes, rates.rates)) {
    if (batch < shape.batch)
      continue;
    double flops = sizes.flopsWithin(shape.least);
    // A limit on one product is one on each of many, or on all at once.
    double work = shape.batch > 1 ? batch * std::min(flops, shape.flops)
                                  : std::min(batch * flops, shape.flops);
    seconds = std::max(seconds, work / rate);
  }
  return seconds;
}

static double memorySeconds(const CostModel &model, StringRef type,
                            int64_t batch, const Sizes &sizes) {
  TypeBytes size = bytesOf(type);
  auto [m, n, k] = sizes;
  double bytes = batch * ((m * k + k * n) * size.operand + m * n * size.result);
  for (const Cache &cache : model.caches)
    if (bytes <= cache.bytes)
      return bytes / cache.bandwidth;
  return bytes / model.bandwidth;
}

std::optional<MatmulCost> CostModel::matmulCost(StringRef type, int64_t batch,
                                                int64_t m, int64_t n,
                                                int64_t k) const {
  const MatmulRates *rates = ratesOf(type);
  if (!rates)
    return std::nullopt;
  const ShapeClass *shape = llvm::find_if(
      classes, [&](const ShapeClass &c) { return c.holds(batch, m, n, k); });
  if (batch <= 0 || m <= 0 || n <= 0 || k <= 0)
    return MatmulCost{rates->launch, Bound::Launch, shape};
  auto [tileM, tileN, tileK] = rates->tile;
  double work =
      workSeconds(*this, *rates, batch,
                  {filled(m, tileM), filled(n, tileN), filled(k, tileK)});
  if (n % rates->multiple || k % rates->multiple)
    work /= rates->misaligned;
  double memory =
      memorySeconds(*this, type, batch, {double(m), double(n), double(k)});
  double roof = std::max(work, memory);
  Bound bound = rates->launch >= roof ? Bound::Launch
                : memory >= work      ? Bound::Memory
                                      : Bound::Compute;
  return MatmulCost{roof + rates->launch, bound, shape};
}

double CostModel::matmulSeconds(StringRef type, int64_t batch, int64_t m,
                                int64_t n, int64_t k) const {
  std::optional<MatmulCost> cost = matmulCost(type, batch, m, n, k);
  return cost ? cost->seconds : std::numeric_limits<double>::infinity();
}

double CostModel::intensityLimit(StringRef type) const {
  const MatmulRates *rates = ratesOf(type);
  return rates ? *llvm::max_element(rates->rates) / bandwidth : 0;
}

/// "1x768x768", or "96 of 256x64x256".
static std::string describe(int64_t batch, int64_t m, int64_t n, int64_t k) {
  std::string product = llvm::formatv("{0}x{1}x{2}", m, n, k);
  return batch == 1 ? product : llvm::formatv("{0} of {1}", batch, product);
}

HalfVerdict CostModel::halfPays(StringRef half, StringRef wide, int64_t batch,
                                int64_t m, int64_t n, int64_t k) const {
  std::optional<MatmulCost> narrow = matmulCost(half, batch, m, n, k);
  std::optional<MatmulCost> full = matmulCost(wide, batch, m, n, k);
  if (!narrow)
    return {false, 0, llvm::formatv("{0} has no {1} products", name, half)};
  if (!full)
    return {true, ShapeClass::kNoLimit,
            llvm::formatv("{0} has no {1} products", name, wide)};
  double gain = full->seconds / narrow->seconds;
  std::string text =
      llvm::formatv("{0} {1:F2} x {2} at {3}: {4}, {5}", half, gain, wide,
                    describe(batch, m, n, k), narrow->shape->name,
                    stringifyBound(narrow->bound));
  return {gain >= kLeastGain, gain, text};
}
