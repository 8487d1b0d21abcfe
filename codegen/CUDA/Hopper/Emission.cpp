//===- Emission.cpp - what the parts of the kernel share ----------------===//

#include "codegen/CUDA/Hopper/Emission.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;

void Emission::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}
