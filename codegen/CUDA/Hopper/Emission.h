//===- Emission.h - what the parts of the wgmma kernel share ----*- C++ -*-===//

#ifndef MP_CODEGEN_CUDA_HOPPER_EMISSION_H
#define MP_CODEGEN_CUDA_HOPPER_EMISSION_H

#include "codegen/CUDA/Builder.h"
#include "codegen/CUDA/Hopper/Plan.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::mp::cuda::hopper {

/// The address space of a cluster's shared memory.
inline constexpr unsigned kClusterMemory = 7;

/// A tile of the result: where it starts, and its matrix of the batch.
struct Tile {
  Value m, n, batch;
};

/// A place in the ring: the number of a stage, and the parity of the phase of
/// its barriers that this round waits for.
struct RingPosition {
  Value stage, parity;
};

/// A kernel in the making. All integers are i32 unless a name says otherwise.
struct Emission {
  Emission(const MatmulKernel &kernel, const Plan &plan, Location loc)
      : kernel(kernel), plan(plan), schedule(*plan.schedule),
        b(loc, loc.getContext()) {}

  const MatmulKernel &kernel;
  const Plan &plan;
  const Schedule &schedule;
  KernelBuilder b;

  // Parameters of the kernel.
  SmallVector<Value> maps, buffers;
  Value size; ///< i64; null without a dynamic extent.
  // What every thread knows.
  Value shared; ///< The dynamic shared memory.
  Value m, n, k, batch, steps;
  Value rowTiles, columnTiles, tiles; ///< How many.
  Value thread, lane, warp;           ///< Of the warpgroup.
  Value warpgroup;
  Value consumer; ///< Number among the computing warpgroups.
  Tile tile;      ///< In the body of forTiles.

  void ifThen(Value condition, llvm::function_ref<void()> body);
};

// Barriers.cpp

/// Makes the barriers and lets every thread and the copies see them.
void emitBarriers(Emission &e);
Value fullBarrier(Emission &e, Value stage);
Value emptyBarrier(Emission &e, Value stage);
void emitWait(Emission &e, Value barrier, Value parity);
RingPosition nextPosition(Emission &e, RingPosition position);
/// A barrier of so many threads.
void emitBarrier(Emission &e, Value id, int64_t threads);
/// The first lane of the warpgroup's first warp, chosen by the hardware.
void ifElected(Emission &e, llvm::function_ref<void()> body);

// Tiles.cpp

/// Computes the extents and the numbers of tiles.
void emitExtents(Emission &e);
/// Goes through the tiles of this block, `e.tile` being the current one.
void forTiles(Emission &e, RingPosition start,
              llvm::function_ref<RingPosition(RingPosition)> body);

// Producer.cpp

/// Where the tile of an operand lies in a stage.
Value operandInStage(Emission &e, Value stage, bool isLhs);
/// The loading warpgroup.
void emitProducer(Emission &e);

// Products.cpp

/// Lets the loads of this stage go on.
void emitRelease(Emission &e, Value stage);
/// The products of one tile. Returns the accumulators: for each eight columns
/// four, (row, column), (row, column + 1), (row + 8, column) and (row + 8,
/// column + 1), as mma.sync leaves them. Moves the position on.
SmallVector<Value> emitProducts(Emission &e, RingPosition &position);

// Epilogue.cpp

/// Computes the results of a warpgroup's accumulators and stores them.
void emitEpilogue(Emission &e, ArrayRef<Value> accumulators);

// Stores.cpp

/// Two neighbours in a row of the result.
struct Pair {
  Value row, column;
  /// Which eight columns of the tile, and which eight rows of the warp's 16.
  int64_t group, half;
  Value value; ///< vector<2xT>
};
void emitStore(Emission &e, const ResultPlan &result, Pair pair);
/// Moves strip number `strip` to global memory, after all its emitStore.
void endStrip(Emission &e, int64_t strip);
/// Waits until shared memory has been read.
void endStores(Emission &e);

} // namespace mlir::mp::cuda::hopper

#endif // MP_CODEGEN_CUDA_HOPPER_EMISSION_H
