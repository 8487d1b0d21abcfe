//===- Passes.td - passes of the code generator ---------------------------===//

#ifndef MP_CODEGEN_LOWER_PASSES_TD
#define MP_CODEGEN_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerRegionsToLinalg
    : Pass<"mp-lower-regions-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Give each region the text of its kernel";
  let description = [{
    Expands the body of each `mp.region` to scalar arithmetic and writes it as
    linalg on tensors, in the form of the backend contract
    (`codegen/docs/BackendContract.md`). The text of that module becomes the
    region's attribute `kernel`. Each operation of the body rounds where it
    rounded before, and nowhere else; `codegen/docs/Lowering.md` says how each
    is computed. A region that the contract has no place for gets no kernel,
    and a remark that says why: `mp-inline-regions=without-kernel` gives it back
    to the framework.

    Example: test/Passes/Examples/lower-regions-to-linalg.mlir
  }];
  let dependentDialects = [
    "::mlir::mp::MPDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

def VerifyBackendContract
    : Pass<"mp-verify-backend-contract", "::mlir::ModuleOp"> {
  let summary = "Check that kernels have the form that backends take";
  let description = [{
    Checks the kernel of each `mp.region` in the module, or the module itself if
    it is a kernel, by the rules of `codegen/docs/BackendContract.md`. A message
    names the rule, K1 to K8, that is broken.

    Example: test/Passes/Examples/verify-backend-contract.mlir
  }];
  let dependentDialects = [
    "::mlir::mp::MPDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

#endif // MP_CODEGEN_LOWER_PASSES_TD
