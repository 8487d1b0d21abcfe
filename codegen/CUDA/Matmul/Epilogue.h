//===- Epilogue.h - from accumulators to the kernel's results ---*- C++ -*-===//
//
// An accumulator fragment holds pairs of neighbours of eight rows: stored from
// there, a line of memory would be written in pieces. So each warp first puts
// its accumulators, in f32, into an area of shared memory of its own (the ring
// is free by then), a slab of rows at a time, and each lane then takes runs of
// neighbours of one row, computes the epilogue on them and stores them, 16
// bytes at a time where the row's length allows it. Operands are read by the
// same runs; those that depend on the column alone are read once.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_CUDA_MATMUL_EPILOGUE_H
#define MP_CODEGEN_CUDA_MATMUL_EPILOGUE_H

#include "codegen/CUDA/Matmul/Mainloop.h"

namespace mlir::mp::cuda {

void emitEpilogue(Frame &frame, const Accumulators &accumulators);

/// Stores the sums that mma.sync made of the operands.
void storeOperandSums(Frame &frame, const Accumulators &accumulators);

} // namespace mlir::mp::cuda

#endif // MP_CODEGEN_CUDA_MATMUL_EPILOGUE_H
