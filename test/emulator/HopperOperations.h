//===- HopperOperations.h - operations of sm_90 ----------------*- C++ -*-===//

#ifndef TEST_EMULATOR_HOPPEROPERATIONS_H
#define TEST_EMULATOR_HOPPEROPERATIONS_H

#include "test/emulator/Machine.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::mp::emulator::hopper {

// mbarrier
void initialize(const Call &call);
void fenceInitialization(const Call &call);
void arrive(const Call &call);
void arriveExpecting(const Call &call);
void waitForParity(const Call &call);

// TMA
void loadBox(const Call &call, unsigned rank);
void storeBox(const Call &call, unsigned rank);
void commitStores(const Call &call);
void waitForStores(const Call &call);
void endOfThread(Machine &machine, Thread &thread);

// wgmma
void fenceRegisters(const Call &call);
void multiply(const Call &call, unsigned columns, bool isBrain);
void commitProducts(const Call &call);
void waitForProducts(const Call &call);
/// A use of accumulators outside wgmma.
void readAccumulators(const Call &call);

void setRegisters(const Call &call);

/// Replaces the operations of the NVVM dialect that would become inline PTX by
/// calls of operations above, and puts readAccumulators before each use of an
/// accumulator.
void replaceInlinePTX(mlir::Operation *module, llvm::StringRef prefix);

} // namespace mlir::mp::emulator::hopper

#endif // TEST_EMULATOR_HOPPEROPERATIONS_H
