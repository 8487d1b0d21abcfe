//===- Exchange.cpp - partial results between the threads of a row --------===//

#include "codegen/CUDA/Rows/Exchange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

static constexpr unsigned kSharedSpace = 3;

void cuda::declareShared(OpBuilder &b, Location loc, StringRef name,
                         Type element, int64_t count) {
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(element, count),
                         /*isConstant=*/false, LLVM::Linkage::Internal, name,
                         Attribute(), /*alignment=*/16, kSharedSpace);
}

Value cuda::sharedAddress(ImplicitLocOpBuilder &b, StringRef name) {
  return LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace), name);
}

/// The value of the lane whose number differs by `mask`; 32 bits.
static Value shuffle32(ImplicitLocOpBuilder &b, Value value, int64_t mask) {
  return NVVM::ShflOp::create(b, value.getType(), constantOf32(b, -1), value,
                              constantOf32(b, mask), constantOf32(b, 31),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value cuda::shuffle(ImplicitLocOpBuilder &b, Value value, int64_t mask) {
  Type type = value.getType();
  if (type.getIntOrFloatBitWidth() == 32)
    return shuffle32(b, value, mask);
  Type word = b.getI32Type();
  if (type.getIntOrFloatBitWidth() < 32) {
    Value wide = arith::ExtUIOp::create(b, word, value);
    return arith::TruncIOp::create(b, type, shuffle32(b, wide, mask));
  }
  Type wide = b.getI64Type();
  if (type.isF64()) {
    Value bits = arith::BitcastOp::create(b, wide, value);
    return arith::BitcastOp::create(b, type, shuffle(b, bits, mask));
  }
  Value shift = constantOf(b, 32);
  Value low = arith::TruncIOp::create(b, word, value);
  Value high =
      arith::TruncIOp::create(b, word, arith::ShRUIOp::create(b, value, shift));
  low = arith::ExtUIOp::create(b, wide, shuffle32(b, low, mask));
  high = arith::ExtUIOp::create(b, wide, shuffle32(b, high, mask));
  return arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, shift));
}

/// Joins the values of `lanes` neighbouring lanes, a power of two.
static void joinLanes(ImplicitLocOpBuilder &b, Partial &partial,
                      int64_t lanes) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
    partial.value = combine(b, partial.combiner, partial.value,
                            shuffle(b, partial.value, mask));
}

static Value slotIndex(ImplicitLocOpBuilder &b, const RowThreads &threads,
                       unsigned slot, Value warp) {
  return scaled(b, warp, 1, constantOf(b, slot * threads.warps()));
}

/// One value of each warp goes through shared memory; then each warp joins all
/// of its row, so that nothing has to come back.
static void joinWarps(ImplicitLocOpBuilder &b, const RowThreads &threads,
                      MutableArrayRef<Partial> partials, unsigned slot) {
  Value lane = arith::RemUIOp::create(b, threads.thread, constantOf(b, 32));
  Value warp = arith::DivUIOp::create(b, threads.thread, constantOf(b, 32));
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                        constantOf(b, 0));
  Value shared = sharedAddress(b, kSlots);
  emitIf(b, isFirst, [&] {
    for (const auto &[i, partial] : llvm::enumerate(partials))
      storeElements(b, partial.value, shared,
                    slotIndex(b, threads, slot + i, warp));
  });
  gpu::BarrierOp::create(b);
  int64_t perRow = threads.threads / 32;
  // The first warp of this row, then as many as there are, again and again.
  Value first = arith::AndIOp::create(b, warp, constantOf(b, -perRow));
  Value mine = arith::AddIOp::create(
      b, first, arith::AndIOp::create(b, lane, constantOf(b, perRow - 1)));
  for (const auto &[i, partial] : llvm::enumerate(partials)) {
    partial.value =
        loadElements(b, shared, slotIndex(b, threads, slot + i, mine),
                     partial.value.getType(), 1);
    joinLanes(b, partial, perRow);
  }
}

void cuda::joinThreads(ImplicitLocOpBuilder &b, const RowThreads &threads,
                       MutableArrayRef<Partial> partials, unsigned slot) {
  for (Partial &partial : partials) {
    partial.value = combineElements(b, partial.combiner, partial.value);
    joinLanes(b, partial, std::min<int64_t>(32, threads.threads));
  }
  if (threads.needsShared() && !partials.empty())
    joinWarps(b, threads, partials, slot);
}
