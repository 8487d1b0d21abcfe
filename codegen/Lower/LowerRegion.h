//===- LowerRegion.h - from a region to the backend contract ----*- C++ -*-===//

#ifndef MP_CODEGEN_LOWER_LOWERREGION_H
#define MP_CODEGEN_LOWER_LOWERREGION_H

#include "dialect/IR/MPOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::mp {

/// The kernel of a region in the form of codegen/docs/BackendContract.md: a
/// module with one function, whose arguments and results are the region's.
/// Null, and a reason, if the contract has no place for a part of it.
OwningOpRef<ModuleOp> lowerRegion(RegionOp region, std::string &reason);

/// The dialects that kernels are made of.
void loadKernelDialects(MLIRContext &context);

/// The text of a kernel, one for equal kernels.
std::string kernelText(ModuleOp kernel);

/// The kernel of a region whose `kernel` attribute is set. Fails with a
/// diagnostic at the region if the text cannot be parsed.
FailureOr<OwningOpRef<ModuleOp>> parseKernelText(RegionOp region);

} // namespace mlir::mp

#endif // MP_CODEGEN_LOWER_LOWERREGION_H
