//===- Plan.cpp - how one product is divided ------------------------------===//

#include "runtime/Gemm/Plan.h"
#include "runtime/Gemm/PackKernels.h"

#include <algorithm>
#include <cstring>

using namespace mp::runtime::gemm;

/// Bytes of sums that a task keeps. They are read and written once for each
/// slice, so they share the second cache with what goes by.
static constexpr int64_t kSumBytes = int64_t(192) << 10;
/// Bytes of packed B that stay in the second cache.
static constexpr int64_t kRhsBytes = int64_t(1280) << 10;
/// Bytes of a panel of one pass: two of them fit the first cache.
static constexpr int64_t kPanelBytes = int64_t(16) << 10;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Best first.
static const Isa *const kIsas[] = {
#ifdef MPOPT_X86_KERNELS
    &kAMX, &kAVX512BF16, &kAVX512, &kAVX2,
#endif
    &kPortable};

/// A product of bf16 may also be one of f32, whose products are exact.
static bool serves(const Isa &isa, Element element) {
  return (isa.packed == element || isa.packed == Element::F32) &&
         isa.isSupported();
}

static const Isa *findIsa(Element element, const char *name) {
  for (const Isa *isa : kIsas)
    if (serves(*isa, element) && (!name || std::strcmp(isa->name, name) == 0))
      return isa;
  return nullptr;
}

const char *mp::runtime::gemm::chooseIsa(Element element, const char *isa) {
  const Isa *found = findIsa(element, isa);
  return found ? found->name : nullptr;
}

static const Pack *findPack(const Pack *packs, int count, Element source,
                            Element packed) {
  for (int i = 0; i != count; ++i)
    if (packs[i].source == source && packs[i].packed == packed)
      return &packs[i];
  return nullptr;
}

const Pack &mp::runtime::gemm::packing(Element source, Element packed) {
#ifdef MPOPT_X86_KERNELS
  if (__builtin_cpu_supports("avx512bw"))
    if (const Pack *pack =
            findPack(kAVX512Packs, kAVX512PackCount, source, packed))
      return *pack;
#endif
  return *findPack(kPortablePacks, kPortablePackCount, source, packed);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Rows of panels one after the other where the second cache holds all of B for
/// a tile; else tiles of several rows, which read B less often.
static void chooseTiles(Plan &plan, int32_t threads) {
  constexpr int64_t kSums = kSumBytes / (kRows * kColumns * 4);
  bool isShallow = plan.columnPanels * plan.panelBytes <= kRhsBytes;
  plan.tileColumns =
      std::min<int64_t>(plan.columnPanels, isShallow ? kSums : 12);
  plan.tileRows =
      isShallow ? 1 : std::min(plan.rowPanels, kSums / plan.tileColumns);
  auto count = [&] {
    plan.rowTiles = ceilDiv(plan.rowPanels, plan.tileRows);
    plan.columnTiles = ceilDiv(plan.columnPanels, plan.tileColumns);
    return plan.batch * plan.rowTiles * plan.columnTiles;
  };
  // Enough tiles for all threads.
  while (count() % threads != 0 && count() < 4 * threads) {
    int64_t &larger =
        plan.tileColumns >= plan.tileRows ? plan.tileColumns : plan.tileRows;
    if (larger == 1)
      break;
    larger = ceilDiv(larger, 2);
  }
  // Tiles of one size, but for the last.
  plan.tileRows = ceilDiv(plan.rowPanels, plan.rowTiles);
  plan.tileColumns = ceilDiv(plan.columnPanels, plan.columnTiles);
  count();
}

static void chooseSlices(Plan &plan) {
  plan.slices = ceilDiv(plan.k, kDepth);
  int64_t bytes = kDepth * kRows * sizeOf(plan.isa->packed);
  plan.panelBytes = plan.slices * bytes;
  int64_t passes = ceilDiv(plan.slices * bytes, kPanelBytes);
  plan.sliceStep = passes ? ceilDiv(plan.slices, passes) : 1;
}

/// A panel of A can be read where it is stored if its elements are those that
/// the instructions read and no row or slice ends within it.
static int64_t firstPackedPanel(const Product &product, const Plan &plan) {
  if (product.lhs.transposed || product.element != plan.isa->packed ||
      plan.k % kDepth != 0)
    return 0;
  return plan.m % kRows == 0 ? plan.rowPanels : plan.rowPanels - 1;
}

Plan mp::runtime::gemm::planFor(const Product &product, const int64_t *sizes,
                                int32_t threads) {
  Plan plan{};
  plan.batch = product.batch.value(sizes);
  plan.m = product.m.value(sizes);
  plan.n = product.n.value(sizes);
  plan.k = product.k.value(sizes);
  plan.isa = findIsa(product.element, product.isa);
  plan.pack = &packing(product.element, plan.isa->packed);
  plan.rowPanels = ceilDiv(plan.m, kRows);
  plan.columnPanels = ceilDiv(plan.n, kColumns);
  if (plan.batch * plan.m * plan.n == 0)
    return plan;
  chooseSlices(plan);
  chooseTiles(plan, std::max(threads, 1));
  plan.rhsMatrices = product.rhs.batched ? plan.batch : 1;
  plan.lhsMatrices = product.lhs.batched ? plan.batch : 1;
  plan.firstPacked = firstPackedPanel(product, plan);
  plan.lhsOffset = plan.rhsPanels() * plan.panelBytes;
  plan.scratchBytes = plan.lhsOffset + plan.lhsPanels() * plan.panelBytes;
  return plan;
}
