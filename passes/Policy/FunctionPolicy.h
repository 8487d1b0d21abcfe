//===- FunctionPolicy.h - a policy as attributes of a function -*- C++ -*-===//
//
// `mp.policy = {file = "policy.toml", sha256 = "...", text = "..."}` carries
// the policy from the backend to the passes and into bundles, so that what a
// bundle says can be repeated without the file.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_POLICY_FUNCTIONPOLICY_H
#define MP_PASSES_POLICY_FUNCTIONPOLICY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Policy/Policy.h"

namespace mlir::mp {

/// The policy that `func` carries; none if it carries none.
llvm::Expected<std::optional<Policy>> policyOf(func::FuncOp func);

/// Makes `func` carry `policy`.
void setPolicy(func::FuncOp func, const Policy &policy);

/// Gives `func` the kinds of the policy's operators, and no others.
void setOpRows(func::FuncOp func, const Policy &policy);

/// "policy.toml (sha256 0123456789ab)" of the policy that `func` carries, or
/// "".
std::string policyLabel(func::FuncOp func);

} // namespace mlir::mp

#endif // MP_PASSES_POLICY_FUNCTIONPOLICY_H
